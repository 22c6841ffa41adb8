import { isObject, type Json } from '../../over-chat/ref.js'

/** What a response is at most, in bytes; one that is longer is not kept. */
const LONGEST = 64 * 1024 * 1024
/** By so much of its line an event tells what it is, where no line before says so. */
const HEAD_BYTES = 96
/** Of the data of each last event; in a text it would have backslashes. */
const LAST_KEY = Buffer.from('"response"')
const LAST_EVENT = /^event: ?response\.(?:completed|incomplete|failed)\r?$/
const LAST_DATA = /^data: ?\{"type": ?"response\.(?:completed|incomplete|failed)"/

/**
 * Finds the finished response in an answer as it passes: a body that is one, or the last event of a stream. Everything else is
 * looked at line by line and not held.
 */
export class AnswerReader {
  readonly #isStream: boolean
  /** Of the body, or of the line that the response is on. */
  #chunks: Buffer[] = []
  #size = 0
  #isTooLong = false
  /** Of the line that is not over yet, until it is known what it is. */
  #head = ''
  #isNext = false
  #line: 'unknown' | 'wanted' | 'other' = 'unknown'
  #found: readonly Buffer[] | null = null
  /** Where in the chunk that made it whole the event that it is in begins; 0 for one that began before. */
  from = 0

  constructor (isStream: boolean) {
    this.#isStream = isStream
  }

  /** Whether it has come whole; nothing is looked for after it. */
  get hasCome (): boolean { return this.#found !== null }

  push (chunk: Buffer): void {
    if (!this.#isStream) return this.#keep(chunk)
    if (this.#isBetween() && endsEvent(chunk) && !chunk.includes(LAST_KEY)) return
    let at = 0
    let from = 0
    while (at < chunk.length) {
      const end = chunk.indexOf(10, at)
      this.#piece(end === -1 ? chunk.subarray(at) : chunk.subarray(at, end), end !== -1)
      if (this.hasCome) {
        this.from = from
        return
      }
      at = end === -1 ? chunk.length : end + 1
      if (this.#isBetween()) from = at
    }
  }

  end (): void {
    if (!this.#isStream) this.#take()
  }

  /** What has come; null where that is no response. */
  response (): Json | null {
    try {
      const said = JSON.parse(Buffer.concat(this.#found ?? []).toString('utf8', this.#isStream ? 'data:'.length : 0)) as unknown
      const response = this.#isStream && isObject(said) ? said.response : said
      return isObject(response) && response.object === 'response' ? response : null
    } catch {
      // what is no JSON is no response
      return null
    }
  }

  /** Whole lines that come here, and say nothing of an end, need no look. */
  #isBetween (): boolean {
    return this.#line === 'unknown' && this.#head === '' && !this.#isNext
  }

  #piece (piece: Buffer, isEnd: boolean): void {
    if (this.#line === 'unknown') {
      this.#head += piece.toString('latin1', 0, HEAD_BYTES - this.#head.length)
      if (this.#isNext && this.#head.startsWith('data:')) this.#line = 'wanted'
      else if (LAST_DATA.test(this.#head)) this.#line = 'wanted'
      else if (!isEnd && this.#head.length < HEAD_BYTES) return this.#keep(piece)
      else this.#line = 'other'
    }
    if (this.#line === 'wanted') this.#keep(piece)
    if (!isEnd) {
      if (this.#line === 'other') this.#drop()
      return
    }
    if (this.#line === 'wanted') this.#take()
    // a comment may stand between the name of an event and its data
    if (!this.#head.startsWith(':')) this.#isNext = LAST_EVENT.test(this.#head)
    this.#drop()
    this.#head = ''
    this.#line = 'unknown'
  }

  #keep (piece: Buffer): void {
    this.#size += piece.length
    this.#isTooLong ||= this.#size > LONGEST
    if (this.#isTooLong) this.#chunks = []
    // its memory may be used again once the chunk has been sent
    else this.#chunks.push(Buffer.from(piece))
  }

  #drop (): void {
    this.#chunks = []
    this.#size = 0
    this.#isTooLong = false
  }

  #take (): void {
    if (!this.#isTooLong && this.#chunks.length > 0) this.#found = this.#chunks
  }
}

/** Whether a chunk ends with the empty line behind an event. */
function endsEvent (chunk: Buffer): boolean {
  const { length } = chunk
  if (chunk[length - 1] !== 10) return false
  return chunk[length - 2] === 10 || (chunk[length - 2] === 13 && chunk[length - 3] === 10)
}
