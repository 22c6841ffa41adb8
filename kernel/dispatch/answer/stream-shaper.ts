import type { Clock, SvcError } from '../../contract/index.js'
import type { Throughput } from '../../slots/life/engine/throughput.js'
import type { TokenCount } from '../requests/active-requests.js'
import type { AnswerSink } from './answer-sink.js'
import { isEventStream } from './headers.js'
import { LineAligner } from './sse-align.js'
import { SseMeter, UsageMeter } from './sse-meter.js'

/**
 * Stands between one upstream call and its sink: cuts event streams behind whole lines and lets the meters see
 * what passes. Once per upstream call, however many clients share it.
 */
export class StreamShaper implements AnswerSink {
  readonly #sink: AnswerSink
  readonly #throughput: Throughput
  readonly #counter: TokenCount
  readonly #clock: Clock
  readonly #startedAt: number
  readonly #heard: () => void
  #aligner: LineAligner | null = null
  #sseMeter: SseMeter | null = null
  #usageMeter: UsageMeter | null = null

  /**
   * @param throughput of the slot or upstream
   * @param heard called whenever something comes
   */
  constructor (sink: AnswerSink, throughput: Throughput, counter: TokenCount, clock: Clock, heard: () => void = () => {}) {
    this.#heard = heard
    this.#sink = sink
    this.#throughput = throughput
    this.#counter = counter
    this.#clock = clock
    this.#startedAt = clock.monotonic()
  }

  head (status: number, rawHeaders: readonly Buffer[] | readonly string[]): void {
    this.#heard()
    if (isEventStream(rawHeaders)) {
      this.#aligner = new LineAligner()
      this.#sseMeter = new SseMeter(this.#throughput, this.#counter, this.#clock, this.#startedAt)
    } else if (status === 200) {
      this.#usageMeter = new UsageMeter(this.#throughput, this.#counter)
    }
    this.#sink.head(status, rawHeaders)
  }

  data (chunk: Buffer): boolean {
    this.#heard()
    if (this.#aligner === null) {
      this.#usageMeter?.push(chunk)
      return this.#sink.data(chunk)
    }
    const lines = this.#aligner.push(chunk)
    if (lines === null) return true
    this.#sseMeter?.push(lines)
    return this.#sink.data(lines)
  }

  end (): void {
    const rest = this.#aligner?.flush() ?? null
    if (rest !== null) this.#sink.data(rest)
    this.#usageMeter?.end()
    this.#sink.end()
  }

  fail (error: SvcError): void {
    this.#sink.fail(error)
  }

  onDrain (resume: () => void): void {
    this.#sink.onDrain(resume)
  }
}
