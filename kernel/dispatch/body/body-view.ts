import { svcError, type JsonBody } from '../../contract/index.js'
import { CLOSE_BRACE, COLON, COMMA, NO_END, OPEN_BRACE, QUOTE, skipSpace, stringEnd, TOO_MUCH, valueEnd, withoutMark } from './json-scan.js'

const LETTER_N = 0x6e
/** Members at the top of a body. Requests have a few dozen; each is looked at by name. */
const MOST_MEMBERS = 10_000

/** Where one top-level member of a JSON object stands: byte offsets, ends exclusive. */
export interface Member {
  readonly key: string
  /** From the key's opening quote. */
  readonly start: number
  readonly valueStart: number
  readonly valueEnd: number
}

/** `too_complex`: nested too deep, or of more parts than any request has. */
export type BodyProblem = 'empty' | 'invalid_json' | 'not_an_object' | 'too_complex'

/**
 * The top level of a JSON body, found in one pass that skips strings with a native search, so that a 20 MB
 * image costs no parse. Checks the structure of the whole body; the inside of strings is the
 * engine's to judge. Holds offsets into the buffer and copies nothing.
 */
export class BodyView implements JsonBody {
  readonly body: Buffer
  readonly members: readonly Member[]

  private constructor (body: Buffer, members: readonly Member[]) {
    this.body = body
    this.members = members
  }

  static of (bytes: Buffer): BodyView | BodyProblem {
    const body = withoutMark(bytes)
    const first = skipSpace(body, 0)
    if (first >= body.length) return 'empty'
    if (body[first] !== OPEN_BRACE) return problemOf(body, first)
    const members: Member[] = []
    const end = readObject(body, first, members)
    if (end === TOO_MUCH) return 'too_complex'
    if (end === NO_END || skipSpace(body, end) !== body.length) return 'invalid_json'
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

  isFalse (key: string): boolean {
    const member = this.member(key)
    return member !== undefined && this.body[member.valueStart] === 0x66
  }

  keys (): readonly string[] {
    return this.members.map(({ key }) => key)
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

/** Offset behind the object that opens at `at`, or why there is none. Iterative: depth costs memory, never the stack. */
function readObject (body: Buffer, at: number, members: Member[]): number {
  let pos = skipSpace(body, at + 1)
  if (body[pos] === CLOSE_BRACE) return pos + 1
  for (;;) {
    const start = pos
    if (body[pos] !== QUOTE) return NO_END
    const keyEnd = stringEnd(body, pos)
    if (keyEnd === NO_END) return NO_END
    pos = skipSpace(body, keyEnd)
    if (body[pos] !== COLON) return NO_END
    const valueStart = skipSpace(body, pos + 1)
    const behind = valueEnd(body, valueStart)
    if (behind < 0) return behind
    if (members.length === MOST_MEMBERS) return TOO_MUCH
    const key = readString(body, start, keyEnd)
    if (key === null) return NO_END
    members.push({ key, start, valueStart, valueEnd: behind })
    pos = skipSpace(body, behind)
    if (body[pos] === CLOSE_BRACE) return pos + 1
    if (body[pos] !== COMMA) return NO_END
    pos = skipSpace(body, pos + 1)
  }
}

function problemOf (body: Buffer, at: number): BodyProblem {
  const end = valueEnd(body, at)
  if (end === TOO_MUCH) return 'too_complex'
  return end !== NO_END && skipSpace(body, end) === body.length ? 'not_an_object' : 'invalid_json'
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
