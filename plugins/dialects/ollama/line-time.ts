/** The second that was told last, and its beginning in ISO 8601. */
let second = NaN
let told = ''

/** Epoch milliseconds as ISO 8601 in UTC. Each line of each answer has one, and most are of the second of the one before. */
export function isoTime (ms: number): string {
  const whole = Math.floor(ms / 1000)
  if (whole !== second) {
    told = new Date(whole * 1000).toISOString().slice(0, -4)
    second = whole
  }
  return `${told}${String(Math.floor(ms) - whole * 1000).padStart(3, '0')}Z`
}
