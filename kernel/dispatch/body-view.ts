import { svcError, type JsonBody } from '../contract/index.js'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const COMMA = 0x2c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const LETTER_N = 0x6e

/** Where one top-level member of a JSON object stands: byte offsets, ends exclusive. */
export interface Member {
  readonly key: string
  /** From the key's opening quote. */
  readonly start: number
  readonly valueStart: number
  readonly valueEnd: number
}

export type BodyProblem = 'invalid_json' | 'not_an_object'

/**
 * The top level of a JSON body, found in one pass that skips strings with a native search, so that a 20 MB
 * image costs no parse (DESIGN 6). Checks the structure of the whole body; the inside of strings is the
 * engine's to judge. Holds offsets into the buffer and copies nothing.
 */
export class BodyView implements JsonBody {
  readonly body: Buffer
  readonly members: readonly Member[]

  private constructor (body: Buffer, members: readonly Member[]) {
    this.body = body
    this.members = members
  }

  static of (body: Buffer): BodyView | BodyProblem {
    const first = skipSpace(body, 0)
    if (first >= body.length) return 'invalid_json'
    if (body[first] !== OPEN_BRACE) return isJsonValue(body, first) ? 'not_an_object' : 'invalid_json'
    const members: Member[] = []
    const end = readObject(body, first, members)
    if (end === -1 || skipSpace(body, end) !== body.length) return 'invalid_json'
    return new BodyView(body, members)
  }

  /** The member a JSON parser would see: the last one of that name. */
  member (key: string): Member | undefined {
    for (let i = this.members.length - 1; i >= 0; i--) {
      if (this.members[i]!.key === key) return this.members[i]
    }
    return undefined
  }

  /** Its value when it is a string, else null. */
  string (key: string): string | null {
    const member = this.member(key)
    if (member === undefined || this.body[member.valueStart] !== QUOTE) return null
    return readString(this.body, member.valueStart, member.valueEnd)
  }

  /** How often a name occurs; JSON allows more than once. */
  count (key: string): number {
    let count = 0
    for (const member of this.members) if (member.key === key) count++
    return count
  }

  isTrue (key: string): boolean {
    const member = this.member(key)
    return member !== undefined && member.valueEnd - member.valueStart === 4 && this.body[member.valueStart] === 0x74
  }

  has (key: string): boolean {
    const member = this.member(key)
    return member !== undefined && this.body[member.valueStart] !== LETTER_N
  }

  value (key: string): unknown {
    const member = this.member(key)
    if (member === undefined) return undefined
    try {
      return JSON.parse(this.body.toString('utf8', member.valueStart, member.valueEnd)) as unknown
    } catch (error) {
      throw svcError('request.invalid_json', `\`${key}\` is not valid JSON`, { param: key, cause: error })
    }
  }
}

/** Offset behind the object that opens at `at`, or -1. Iterative: depth costs memory, never the stack. */
function readObject (body: Buffer, at: number, members: Member[]): number {
  let pos = skipSpace(body, at + 1)
  if (body[pos] === CLOSE_BRACE) return pos + 1
  for (;;) {
    const start = pos
    if (body[pos] !== QUOTE) return -1
    const keyEnd = stringEnd(body, pos)
    if (keyEnd === -1) return -1
    pos = skipSpace(body, keyEnd)
    if (body[pos] !== COLON) return -1
    const valueStart = skipSpace(body, pos + 1)
    const valueEnd = valueEndOf(body, valueStart)
    if (valueEnd === -1) return -1
    const key = readString(body, start, keyEnd)
    if (key === null) return -1
    members.push({ key, start, valueStart, valueEnd })
    pos = skipSpace(body, valueEnd)
    if (body[pos] === CLOSE_BRACE) return pos + 1
    if (body[pos] !== COMMA) return -1
    pos = skipSpace(body, pos + 1)
  }
}

function valueEndOf (body: Buffer, at: number): number {
  const c = body[at]
  if (c === QUOTE) return stringEnd(body, at)
  if (c === OPEN_BRACE || c === OPEN_BRACKET) return containerEnd(body, at)
  return scalarEnd(body, at)
}

/**
 * Offset behind the container that opens at `at`, or -1. `expect` says what may come next, so that commas,
 * colons and keys are checked at every depth.
 */
function containerEnd (body: Buffer, at: number): number {
  const stack: boolean[] = [] // true: object
  let pos = at
  let expect: 'value' | 'first' | 'key' | 'after' = 'value'
  for (;;) {
    pos = skipSpace(body, pos)
    const c = body[pos]
    if (c === undefined) return -1
    const inObject = stack.length > 0 && stack[stack.length - 1]!
    if (expect === 'after') {
      if (c === COMMA) {
        expect = inObject ? 'key' : 'value'
        pos++
        continue
      }
      if (c !== (inObject ? CLOSE_BRACE : CLOSE_BRACKET)) return -1
      stack.pop()
      pos++
      if (stack.length === 0) return pos
      continue
    }
    if (expect === 'first' && c === (inObject ? CLOSE_BRACE : CLOSE_BRACKET)) {
      stack.pop()
      pos++
      if (stack.length === 0) return pos
      expect = 'after'
      continue
    }
    if (expect === 'key' || (expect === 'first' && inObject)) {
      if (c !== QUOTE) return -1
      const end = stringEnd(body, pos)
      if (end === -1) return -1
      pos = skipSpace(body, end)
      if (body[pos] !== COLON) return -1
      pos++
      expect = 'value'
      continue
    }
    if (c === OPEN_BRACE || c === OPEN_BRACKET) {
      stack.push(c === OPEN_BRACE)
      pos++
      expect = 'first'
      continue
    }
    pos = c === QUOTE ? stringEnd(body, pos) : scalarEnd(body, pos)
    if (pos === -1) return -1
    expect = 'after'
  }
}

/** Most strings are names and short words: a native search costs more than looking at this many bytes. */
const SHORT_STRING = 24

/** Offset behind the closing quote, or -1. A quote is escaped when an odd number of backslashes precedes it. */
function stringEnd (body: Buffer, at: number): number {
  let pos = at + 1
  for (const near = Math.min(pos + SHORT_STRING, body.length); pos < near; pos++) {
    const c = body[pos]
    if (c === QUOTE) return pos + 1
    if (c === BACKSLASH) break
  }
  for (;;) {
    const quote = body.indexOf(QUOTE, pos)
    if (quote === -1) return -1
    let slashes = 0
    while (body[quote - 1 - slashes] === BACKSLASH) slashes++
    if (slashes % 2 === 0) return quote + 1
    pos = quote + 1
  }
}

const scalar = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/
const LONGEST_NUMBER = 4096

function scalarEnd (body: Buffer, at: number): number {
  let pos = at
  while (pos < body.length && !endsScalar(body[pos]!)) pos++
  if (pos === at || pos - at > LONGEST_NUMBER) return -1
  return scalar.test(body.toString('latin1', at, pos)) ? pos : -1
}

function endsScalar (c: number): boolean {
  return c === COMMA || c === CLOSE_BRACE || c === CLOSE_BRACKET || isSpace(c)
}

function isSpace (c: number | undefined): boolean {
  return c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09
}

function skipSpace (body: Buffer, at: number): number {
  let pos = at
  while (isSpace(body[pos])) pos++
  return pos
}

function isJsonValue (body: Buffer, at: number): boolean {
  const end = valueEndOf(body, at)
  return end !== -1 && skipSpace(body, end) === body.length
}

/** The text between the quotes; null when its escapes are wrong. */
function readString (body: Buffer, start: number, end: number): string | null {
  const raw = body.toString('utf8', start + 1, end - 1)
  if (!raw.includes('\\')) return raw
  try {
    return JSON.parse(`"${raw}"`) as string
  } catch {
    return null
  }
}
