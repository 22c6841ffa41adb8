export interface Found {
  readonly start: number
  /** Behind its last character. */
  readonly end: number
}

/** Where the mark that ends first stands; of two that end together the longer one counts. Pure. */
export function firstMark (text: string, marks: readonly string[], from = 0): Found | null {
  let best: Found | null = null
  for (const mark of marks) {
    const start = text.indexOf(mark, from)
    if (start === -1) continue
    const end = start + mark.length
    if (best === null || end < best.end || (end === best.end && start < best.start)) best = { start, end }
  }
  return best
}

/** Length of the longest end of `text` with which a mark could begin. Pure. */
export function openEnd (text: string, marks: readonly string[]): number {
  const longest = Math.max(0, ...marks.map(mark => mark.length - 1))
  for (let length = Math.min(longest, text.length); length > 0; length--) {
    const end = text.slice(text.length - length)
    if (marks.some(mark => mark.startsWith(end))) return length
  }
  return 0
}
