import type { ReaderSink } from './answer-sink.js'
import { PassingSink } from './passing-sink.js'

/** How engines and upstreams answer on a path that they do not know. */
const lackStatuses: ReadonlySet<number> = new Set([404, 405, 501])

/**
 * Stands before a reader while it is not known whether the place that its request went to speaks the surface at all. An answer
 * that says it does not is kept from the reader; `lacking` is called at its end. Every other answer passes.
 */
export class LackWatch extends PassingSink {
  readonly #lacking: () => void
  #isLacking = false

  constructor (sink: ReaderSink, lacking: () => void) {
    super(sink)
    this.#lacking = lacking
  }

  override head (status: number, rawHeaders: readonly Buffer[] | readonly string[]): void {
    this.#isLacking = lackStatuses.has(status)
    if (!this.#isLacking) this.sink.head(status, rawHeaders)
  }

  override data (chunk: Buffer): boolean {
    return this.#isLacking || this.sink.data(chunk)
  }

  override end (): void {
    if (!this.#isLacking) this.sink.end()
    else if (!this.sink.done) this.#lacking()
  }
}
