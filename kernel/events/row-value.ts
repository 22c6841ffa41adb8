import { redact, shownName, type CleanText } from '../contract/index.js'

/** Most characters of JSON that `before` and `after` of an audit row have together. */
export const MOST_JSON = 32 * 1024

/**
 * Without secrets, every name and text at the length of a name: a row says what changed, the files have it whole. What is
 * longer than `most` as JSON is a word on its length, and beyond that nothing is looked at. Pure.
 */
export function rowValue (
  value: unknown, clean: CleanText, most = MOST_JSON
): { readonly value: unknown, readonly length: number } {
  if (value === undefined || value === null) return { value: null, length: 0 }
  // each item takes two characters at least
  const safe = redact(value, text => shownName(clean(text)), MOST_JSON / 2)
  const length = JSON.stringify(safe)?.length ?? 0
  return length > most ? { value: { truncated: true, length }, length: 0 } : { value: safe, length }
}
