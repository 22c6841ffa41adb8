import { errors } from 'undici'
import { readHead, type WireHead } from './answer-head.js'

const HEAD_END = Buffer.from('\r\n\r\n')
/** The end of such a head would be waited for without end. */
const LONE_FEED = /(?:^|[^\r])\n/
const LONGEST_HEAD = 16 * 1024
const EMPTY = Buffer.alloc(0)

/** Takes the heads of a connection's answers out of what comes, in as many pieces as they come. */
export class HeadReader {
  /** What came of a head so far. */
  #partial: Buffer = EMPTY
  /** The last head that came, and what it says. */
  #last: { readonly text: string, readonly head: WireHead } | null = null
  /** Where the body begins in the piece that ended the head. */
  bodyAt = 0

  /** Null while more has to come. Throws what the answer ends with, which is not an end of the connection. */
  take (piece: Buffer): WireHead | null {
    const before = this.#partial.length
    const bytes = before > 0 ? Buffer.concat([this.#partial, piece]) : piece
    let start = 0
    for (;;) {
      const end = bytes.indexOf(HEAD_END, start)
      if (end === -1 || end - start > LONGEST_HEAD) {
        this.#keep(bytes.subarray(start))
        return null
      }
      const head = this.#headOf(bytes.toString('latin1', start, end))
      start = end + HEAD_END.length
      if (head.status === 101) throw new errors.HTTPParserError('the server switched protocols')
      // what an answer is announced with is not passed on
      if (head.status < 200) continue
      this.#partial = EMPTY
      this.bodyAt = start - before
      return head
    }
  }

  #keep (rest: Buffer): void {
    if (rest.length > LONGEST_HEAD) throw new errors.HeadersOverflowError()
    if (LONE_FEED.test(rest.toString('latin1'))) throw new errors.HTTPParserError('a header line has no carriage return')
    this.#partial = Buffer.from(rest)
  }

  /** An engine begins most of its answers alike, within one second at least: the same text is not taken apart again. */
  #headOf (text: string): WireHead {
    if (this.#last?.text === text) return this.#last.head
    const head = readHead(text)
    if (typeof head === 'string') throw new errors.HTTPParserError(head)
    this.#last = { text, head }
    return head
  }
}
