import { isObject, type Json } from '../../over-chat/ref.js'

/** What a response is at most, in bytes; one that is longer is not kept. */
const LONGEST = 64 * 1024 * 1024
/** By so much of its line an event tells what it is, where no line before says so. */
const HEAD_BYTES = 96
const LAST_WORDS = ['response.completed', 'response.incomplete', 'response.failed'].map(word => Buffer.from(word))
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
  /** Null until it has come whole. */
  response: Json | null = null

  constructor (isStream: boolean) {
    this.#isStream = isStream
  }

  push (chunk: Buffer): void {
    if (!this.#isStream) return this.#keep(chunk)
    if (this.#isBetween() && chunk[chunk.length - 1] === 10 && !LAST_WORDS.some(word => chunk.includes(word))) return
    let at = 0
    while (at < chunk.length) {
      const end = chunk.indexOf(10, at)
      this.#piece(end === -1 ? chunk.subarray(at) : chunk.subarray(at, end), end !== -1)
      at = end === -1 ? chunk.length : end + 1
    }
  }

  end (): void {
    if (!this.#isStream) this.#take(0)
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
    if (this.#line === 'wanted') this.#take('data:'.length)
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

  #take (from: number): void {
    if (this.#isTooLong || this.#chunks.length === 0) return
    try {
      const said = JSON.parse(Buffer.concat(this.#chunks).toString('utf8', from)) as unknown
      const response = this.#isStream && isObject(said) ? said.response : said
      if (isObject(response) && response.object === 'response') this.response = response
    } catch {
      // what is no JSON is no response
    }
  }
}
