import { svcError, type SvcError } from '../errors/errors.js'

export interface JsonBounds {
  readonly depth: number
  /** Of one object. */
  readonly keys: number
  readonly values: number
}

/** What a JSON body of `/api` may look like. Everything behind the door may recurse on it, and walk it once. */
export const jsonBounds = { depth: 64, keys: 1_000, values: 10_000 } as const satisfies JsonBounds

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const [OPEN_LIST, CLOSE_LIST, OPEN_TABLE, CLOSE_TABLE] = [0x5b, 0x5d, 0x7b, 0x7d]

/**
 * Why a JSON text is deeper or larger than `bounds` (`request.too_complex`); null when it is not, or is no JSON at all: that
 * is for the parser to say. One pass, no recursion, nothing kept but a counter for each level.
 */
export function jsonExcess (text: Buffer, bounds: JsonBounds = jsonBounds): SvcError | null {
  // what could not hold too much of anything however it is written
  if (text.length <= bounds.depth) return null
  const tooMuch = (what: string, bound: keyof JsonBounds, unit: string): SvcError =>
    svcError('request.too_complex', `the JSON body ${what}; ${bounds[bound]} ${unit} are allowed`, { details: { [`max_${bound}`]: bounds[bound] } })
  const keys = new Int32Array(bounds.depth + 1)
  let depth = 0
  let values = 1
  for (let at = 0; at < text.length; at++) {
    const byte = text[at]!
    if (byte === QUOTE) {
      at = endOfString(text, at)
    } else if (byte === OPEN_LIST || byte === OPEN_TABLE) {
      if (++depth > bounds.depth) return tooMuch('is nested too deeply', 'depth', 'levels')
      values++
      // a list counts no keys
      keys[depth] = byte === OPEN_TABLE ? 1 : -text.length
    } else if (byte === CLOSE_LIST || byte === CLOSE_TABLE) {
      depth = Math.max(depth - 1, 0)
    } else if (byte === COMMA) {
      if (++values > bounds.values) return tooMuch('holds too many values', 'values', 'values')
      if (++keys[depth]! > bounds.keys) return tooMuch('has an object with too many keys', 'keys', 'keys')
    }
  }
  return null
}

/** Where the string that begins at `from` ends; the end of the text for one that is not closed. */
function endOfString (text: Buffer, from: number): number {
  for (let quote = text.indexOf(QUOTE, from + 1); quote !== -1; quote = text.indexOf(QUOTE, quote + 1)) {
    let escapes = 0
    while (text[quote - 1 - escapes] === BACKSLASH) escapes++
    if (escapes % 2 === 0) return quote
  }
  return text.length
}
