import { redactLine, type CleanText } from './redact.js'

const LONGEST_NAME = 200
const LONGEST_TEXT = 4096
const LONGEST_LINE = 500
const MAX_DEPTH = 8
/** Nothing beyond it is looked at: what is told is shorter by far, and the patterns are for texts, not for files. */
const MOST_READ = 1024 * 1024
/** What is read of a line, so that a secret is not cut before it is known. */
const MOST_OF_LINE = 16_384
/** Colours, moves and titles of a terminal. */
const STEERING = /\u001b(?:\[[\d;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\^_])/g
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g
/** No language has such a word: a path, an address, or an attack. */
const LONG_WORD = /[^\s']{202,}/g
/** Fields that hold names that users gave, with blanks or without. */
const names: ReadonlySet<string> = new Set([
  'action', 'agent', 'alias', 'file', 'field', 'host', 'id', 'key', 'method', 'model', 'name', 'origin', 'param', 'path', 'plugin', 'profile', 'remote',
  'repo', 'slot', 'target', 'upstream', 'url', 'value', 'voice'
])

/**
 * A name from a client, at a length that fits a message, a log line and an audit row. Code that quotes input uses
 * this; `SvcError` cuts what was forgotten.
 */
export function shownName (name: string): string {
  return cut(name, LONGEST_NAME)
}

/** A message without the length of what it quotes: names in quotes, and words that are no words. */
export function shownMessage (text: string): string {
  if (text.length <= LONGEST_NAME) return text
  const named = text.slice(0, MOST_READ).replace(/'([^']*)'/g, (quoted, name: string) => name.length <= LONGEST_NAME ? quoted : `'${shownName(name)}'`)
  return cut(named.replace(LONG_WORD, shownName), LONGEST_TEXT)
}

/**
 * A line that a program wrote, for a status or a log: without secrets, without what steers a terminal, at most `most`
 * characters of it.
 * @param clean takes out the secrets that the gateway knows
 */
export function shownLine (line: string, clean: CleanText, most = LONGEST_LINE): string {
  const plain = line.slice(0, MOST_OF_LINE).replace(STEERING, '').replace(CONTROL, ' ').trim()
  return cut(redactLine(clean(plain)), most)
}

/** Facts about a failure, every text in them at a length that a client can be told, and names at that of names. */
export function shownFacts (facts: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return isShort(facts, 0) ? facts : shorter(facts, '', 0) as Record<string, unknown>
}

function isShort (value: unknown, depth: number): boolean {
  if (typeof value === 'string') return value.length <= LONGEST_NAME
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return true
  if (value instanceof Error) return value.message.length <= LONGEST_NAME
  for (const [key, item] of Object.entries(value)) {
    if (key.length > LONGEST_NAME || !isShort(item, depth + 1)) return false
  }
  return true
}

function shorter (value: unknown, key: string, depth: number): unknown {
  if (typeof value === 'string') return names.has(key) ? shownName(value) : shownMessage(value)
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return value
  if (Array.isArray(value)) return value.map(item => shorter(item, key, depth + 1))
  if (value instanceof Error) return shorterError(value)
  return Object.fromEntries(Object.entries(value).map(([own, item]) => [shownName(own), shorter(item, own, depth + 1)]))
}

function shorterError (error: Error): Error {
  const message = shownMessage(error.message)
  if (message === error.message) return error
  const stack = error.stack?.replace(error.message, () => message)
  return Object.assign(Object.create(Object.getPrototypeOf(error) as object) as Error, error, { message, stack })
}

function cut (text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text
}
