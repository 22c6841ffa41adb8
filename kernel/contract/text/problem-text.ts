/** Messages that go on from the key: `device must be one of …`. All others are sentences of their own. */
const PREDICATE = /^(must|is|are|was|has|cannot|may|names|says|needs|contradicts|points|controls|takes|does|holds|belongs|makes)\b/

/** A problem with the key that it concerns: `port must be …`, but `port: port 8085 belongs to …`. Pure. */
export function problemText (path: string, message: string): string {
  if (path === '') return message
  return PREDICATE.test(message) ? `${path} ${message}` : `${path}: ${message}`
}
