const LONGEST_NAME = 200
const LONGEST_TEXT = 4096
const MAX_DEPTH = 8

/**
 * A name that somebody sent, at a length that fits a message, a log line and an audit row. Whoever quotes input uses
 * this; `SvcError` cuts what was forgotten.
 */
export function shownName (name: string): string {
  return cut(name, LONGEST_NAME)
}

/** A message without the length of what it quotes. */
export function shownMessage (text: string): string {
  if (text.length <= LONGEST_NAME) return text
  return cut(text.replace(/'([^']*)'/g, (quoted, name: string) => name.length <= LONGEST_NAME ? quoted : `'${shownName(name)}'`), LONGEST_TEXT)
}

/** Facts about a failure, every text in them at a length that a client can be told. */
export function shownFacts (facts: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return isShort(facts, 0) ? facts : shorter(facts, 0) as Record<string, unknown>
}

function isShort (value: unknown, depth: number): boolean {
  if (typeof value === 'string') return value.length <= LONGEST_TEXT
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return true
  for (const [key, item] of Object.entries(value)) {
    if (key.length > LONGEST_NAME || !isShort(item, depth + 1)) return false
  }
  return true
}

function shorter (value: unknown, depth: number): unknown {
  if (typeof value === 'string') return cut(value, LONGEST_TEXT)
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return value
  if (Array.isArray(value)) return value.map(item => shorter(item, depth + 1))
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [shownName(key), shorter(item, depth + 1)]))
}

function cut (text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text
}
