import type { Clock, SvcError } from '../../contract/index.js'
import type { HoldTimes, ReaderSink } from './answer-sink.js'

/** How engines and upstreams answer on a path that they do not know. */
const lackStatuses: ReadonlySet<number> = new Set([404, 405, 501])

/**
 * Stands before a reader while it is not known whether the place that its request went to speaks the surface at all. An answer
 * that says it does not is kept from the reader; `lacking` is called at its end. Every other answer passes.
 */
export class LackWatch implements ReaderSink {
  readonly #sink: ReaderSink
  readonly #lacking: () => void
  #isLacking = false

  constructor (sink: ReaderSink, lacking: () => void) {
    this.#sink = sink
    this.#lacking = lacking
  }

  get done (): boolean { return this.#sink.done }
  get flowing (): boolean { return this.#sink.flowing }
  get failed (): boolean { return this.#sink.failed }
  get isClients (): boolean { return this.#sink.isClients }
  get bytesOut (): number { return this.#sink.bytesOut }
  get pendingBytes (): number { return this.#sink.pendingBytes }

  head (status: number, rawHeaders: readonly Buffer[] | readonly string[]): void {
    this.#isLacking = lackStatuses.has(status)
    if (!this.#isLacking) this.#sink.head(status, rawHeaders)
  }

  data (chunk: Buffer): boolean {
    return this.#isLacking || this.#sink.data(chunk)
  }

  end (): void {
    if (!this.#isLacking) this.#sink.end()
    else if (!this.#sink.done) this.#lacking()
  }

  fail (error: SvcError): void {
    this.#sink.fail(error)
  }

  onDrain (resume: () => void): void {
    this.#sink.onDrain(resume)
  }

  hold (clock: Clock, times: HoldTimes): void {
    this.#sink.hold(clock, times)
  }

  note (event: Buffer, clock: Clock, pingMs: number): boolean {
    return this.#sink.note(event, clock, pingMs)
  }

  cutOff (error: SvcError): void {
    this.#sink.cutOff(error)
  }
}
