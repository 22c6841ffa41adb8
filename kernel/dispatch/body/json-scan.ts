/** Where the parts of a JSON text stand, found without parsing it: the work is one pass, whatever the text holds. */

export const QUOTE = 0x22
const BACKSLASH = 0x5c
export const COLON = 0x3a
export const COMMA = 0x2c
export const OPEN_BRACE = 0x7b
export const CLOSE_BRACE = 0x7d
export const OPEN_BRACKET = 0x5b
export const CLOSE_BRACKET = 0x5d

/** Levels of nesting. Deeper is no request that an engine could answer; most parsers give up much earlier. */
const MOST_LEVELS = 1_000
/** Objects and lists in one value. A request with tools and a long conversation has some thousands. */
const MOST_CONTAINERS = 1_000_000

/** What stands where a value should end: nothing of the kind, or more than is looked at. Both are below every offset. */
export const NO_END = -1
export const TOO_MUCH = -2

/** Some editors and shells begin every file with a byte order mark; it is no part of the JSON. */
export function withoutMark (bytes: Buffer): Buffer {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes
}

export function isSpace (c: number | undefined): boolean {
  return c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09
}

export function skipSpace (body: Buffer, at: number): number {
  let pos = at
  // a look behind the end would make every later one slow: the compiled code gives up on it
  while (pos < body.length && isSpace(body[pos])) pos++
  return pos
}

/** Offset behind the value that starts at `at`, or `NO_END` or `TOO_MUCH`. */
export function valueEnd (body: Buffer, at: number): number {
  const c = body[at]
  if (c === QUOTE) return stringEnd(body, at)
  if (c === OPEN_BRACE || c === OPEN_BRACKET) return containerEnd(body, at)
  return scalarEnd(body, at)
}

/** Where the elements of the list that opens at `at` stand, as starts and ends in turn; null when they are more than `most`. */
export function elementsOf (body: Buffer, at: number, most: number): number[] | null {
  const places: number[] = []
  let pos = skipSpace(body, at + 1)
  if (body[pos] === CLOSE_BRACKET) return places
  for (;;) {
    const end = valueEnd(body, pos)
    if (end < 0 || places.length === most * 2) return null
    places.push(pos, end)
    pos = skipSpace(body, end)
    if (body[pos] === CLOSE_BRACKET) return places
    if (body[pos] !== COMMA) return null
    pos = skipSpace(body, pos + 1)
  }
}

/** Which containers are open: 1 is an object. Of one scan at a time, since none awaits anything. */
const open = new Uint8Array(MOST_LEVELS)

/**
 * Offset behind the container that opens at `at`. `expect` says what may come next, so that commas,
 * colons and keys are checked at every depth.
 */
function containerEnd (body: Buffer, at: number): number {
  let depth = 0
  let containers = 0
  let inObject = false
  let pos = at
  let expect: 'value' | 'first' | 'key' | 'after' = 'value'
  for (;;) {
    pos = skipSpace(body, pos)
    const c = body[pos]
    if (c === undefined) return NO_END
    if (expect === 'after' && c === COMMA) {
      expect = inObject ? 'key' : 'value'
      pos++
    } else if ((expect === 'after' || expect === 'first') && c === (inObject ? CLOSE_BRACE : CLOSE_BRACKET)) {
      pos++
      if (--depth === 0) return pos
      inObject = open[depth - 1] === 1
      expect = 'after'
    } else if (expect === 'after') {
      return NO_END
    } else if (expect === 'key' || (expect === 'first' && inObject)) {
      if (c !== QUOTE) return NO_END
      const end = stringEnd(body, pos)
      if (end === NO_END) return NO_END
      pos = skipSpace(body, end)
      if (body[pos] !== COLON) return NO_END
      pos++
      expect = 'value'
    } else if (c === OPEN_BRACE || c === OPEN_BRACKET) {
      if (depth === MOST_LEVELS || ++containers > MOST_CONTAINERS) return TOO_MUCH
      inObject = c === OPEN_BRACE
      open[depth++] = inObject ? 1 : 0
      pos++
      expect = 'first'
    } else {
      pos = c === QUOTE ? stringEnd(body, pos) : scalarEnd(body, pos)
      if (pos === NO_END) return NO_END
      expect = 'after'
    }
  }
}

/** Most strings are names and short words: a native search costs more than looking at this many bytes. */
const SHORT_STRING = 24

/** Offset behind the closing quote, or -1. A quote is escaped when an odd number of backslashes precedes it. */
export function stringEnd (body: Buffer, at: number): number {
  let pos = at + 1
  for (const near = Math.min(pos + SHORT_STRING, body.length); pos < near; pos++) {
    const c = body[pos]
    if (c === QUOTE) return pos + 1
    if (c === BACKSLASH) break
  }
  for (;;) {
    const quote = body.indexOf(QUOTE, pos)
    if (quote === -1) return NO_END
    let slashes = 0
    while (body[quote - 1 - slashes] === BACKSLASH) slashes++
    if (slashes % 2 === 0) return quote + 1
    pos = quote + 1
  }
}

const LONGEST_NUMBER = 4096
const words = ['true', 'false', 'null'].map(word => Buffer.from(word))

function scalarEnd (body: Buffer, at: number): number {
  const end = numberEnd(body, at)
  if (end !== NO_END) return end - at <= LONGEST_NUMBER && endsScalar(body[end]) ? end : NO_END
  for (const word of words) {
    const behind = at + word.length
    if (body[at] === word[0] && body.compare(word, 0, word.length, at, Math.min(behind, body.length)) === 0) {
      return endsScalar(body[behind]) ? behind : NO_END
    }
  }
  return NO_END
}

const ZERO = 0x30
const MINUS = 0x2d

function numberEnd (body: Buffer, at: number): number {
  let pos = body[at] === MINUS ? at + 1 : at
  if (!isDigit(body[pos])) return NO_END
  pos = body[pos] === ZERO ? pos + 1 : digitsEnd(body, pos)
  if (body[pos] === 0x2e) {
    if (!isDigit(body[pos + 1])) return NO_END
    pos = digitsEnd(body, pos + 1)
  }
  if (body[pos] !== 0x65 && body[pos] !== 0x45) return pos
  pos++
  if (body[pos] === 0x2b || body[pos] === MINUS) pos++
  return isDigit(body[pos]) ? digitsEnd(body, pos) : NO_END
}

function digitsEnd (body: Buffer, at: number): number {
  let pos = at
  while (isDigit(body[pos])) pos++
  return pos
}

function isDigit (c: number | undefined): boolean {
  return c !== undefined && c >= ZERO && c <= 0x39
}

function endsScalar (c: number | undefined): boolean {
  return c === undefined || c === COMMA || c === CLOSE_BRACE || c === CLOSE_BRACKET || isSpace(c)
}
