import { svcError, type OutgoingEnd, type OutgoingWatch, type SvcError } from '../../contract/index.js'
import type { AnswerSink } from '../answer/answer-sink.js'
import { UsageReader } from '../answer/usage-reader.js'
import type { TokenCount } from '../requests/active-requests.js'

/** The one watch of what goes to upstreams (contract `DispatchService.watchOutgoing`). */
export class OutgoingWatchHolder {
  watch: OutgoingWatch | null = null

  use (watch: OutgoingWatch): () => void {
    if (this.watch !== null) throw svcError('plugin.conflict', 'requests to upstreams are watched already')
    this.watch = watch
    return () => {
      if (this.watch === watch) this.watch = null
    }
  }
}

/** Stands before the reader of a call that is watched and tells its end, once. */
export class WatchedCall implements AnswerSink {
  readonly #sink: AnswerSink
  readonly #end: OutgoingEnd
  readonly #counter: TokenCount
  readonly #before: number
  readonly #reader = new UsageReader()
  #status: number | null = null
  #whole = false

  /** @param counter counts the pieces of a stream */
  constructor (sink: AnswerSink, end: OutgoingEnd, counter: TokenCount) {
    this.#sink = sink
    this.#end = end
    this.#counter = counter
    this.#before = counter.tokens
  }

  head (status: number, rawHeaders: readonly Buffer[] | readonly string[]): void {
    this.#status = status
    this.#sink.head(status, rawHeaders)
  }

  data (chunk: Buffer): boolean {
    this.#reader.push(chunk)
    return this.#sink.data(chunk)
  }

  end (): void {
    this.#whole = true
    this.#sink.end()
  }

  fail (error: SvcError): void {
    this.#sink.fail(error)
  }

  onDrain (resume: () => void): void {
    this.#sink.onDrain(resume)
  }

  /** Nothing of the call is left. @param left its reader gave it up */
  settled (left: boolean): void {
    const pieces = this.#counter.tokens - this.#before
    this.#end({ status: this.#status, whole: this.#whole, left, ...this.#reader.usage(), pieces })
  }
}
