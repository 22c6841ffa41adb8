/** Milliseconds since 1970, for times that are stored and shown. */
export function wallTime (): number {
  return Date.now()
}
