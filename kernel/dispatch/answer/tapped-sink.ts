import type { AnswerTap, HeldPart, Logger } from '../../contract/index.js'
import type { ReaderSink } from './answer-sink.js'
import { isEventStream } from './headers.js'
import { PassingSink } from './passing-sink.js'

/** Lets a route see an answer before its reader does (contract `ForwardOptions.tap`). */
export class TappedSink extends PassingSink {
  #tap: AnswerTap | null
  readonly #upstream: () => string | null
  readonly #log: Logger

  constructor (sink: ReaderSink, tap: AnswerTap, upstream: () => string | null, log: Logger) {
    super(sink)
    this.#tap = tap
    this.#upstream = upstream
    this.#log = log
  }

  override head (status: number, rawHeaders: readonly Buffer[] | readonly string[]): void {
    this.#told(tap => tap.head({ status, isEventStream: isEventStream(rawHeaders), upstream: this.#upstream() }))
    this.sink.head(status, rawHeaders)
  }

  override data (chunk: Buffer): boolean {
    const held = this.#told(tap => tap.data(chunk))
    if (held === null) return this.sink.data(chunk)
    const { from } = held
    if (from > 0) {
      this.sink.data(chunk.subarray(0, from))
      this.sink.flush()
    }
    this.#told(() => held.work())
    return this.sink.data(chunk.subarray(from))
  }

  override end (): void {
    this.#told(tap => tap.end())
    this.sink.end()
  }

  /** A tap that fails is no reason to keep the answer from its reader. */
  #told (tell: (tap: AnswerTap) => HeldPart | null | void): HeldPart | null {
    if (this.#tap === null || this.sink.done) return null
    try {
      return tell(this.#tap) ?? null
    } catch (error) {
      this.#tap = null
      this.#log.error({ err: error }, 'a task beside an answer failed; the answer itself continues')
      return null
    }
  }
}
