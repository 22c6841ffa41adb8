import type { Clock, SlotMetrics } from '../contract/index.js'

const WINDOW_MS = 10_000

/** Token and latency counters of one slot: a window of ten seconds and totals. Fixed size. */
export class Throughput {
  readonly #clock: Clock
  /** Ring of one bucket per second; a bucket is valid only in its own second. */
  readonly #tokens = new Float64Array(WINDOW_MS / 1000)
  readonly #seconds = new Float64Array(WINDOW_MS / 1000)
  #requestCount = 0
  #tokenCount = 0
  #ttftMs: number | null = null

  constructor (clock: Clock) {
    this.#clock = clock
  }

  request (): void {
    this.#requestCount++
  }

  addTokens (count: number): void {
    const second = Math.floor(this.#clock.monotonic() / 1000)
    const i = second % this.#tokens.length
    if (this.#seconds[i] !== second) {
      this.#seconds[i] = second
      this.#tokens[i] = 0
    }
    this.#tokens[i]! += count
    this.#tokenCount += count
  }

  /** Milliseconds from hand-off to the first content-bearing event. */
  firstToken (ms: number): void {
    this.#ttftMs = ms
  }

  read (): SlotMetrics {
    const second = Math.floor(this.#clock.monotonic() / 1000)
    let tokens = 0
    for (let i = 0; i < this.#tokens.length; i++) {
      if (second - this.#seconds[i]! < this.#tokens.length) tokens += this.#tokens[i]!
    }
    return {
      tokensPerSec: tokens / this.#tokens.length,
      ttftMs: this.#ttftMs,
      requestCount: this.#requestCount,
      tokenCount: this.#tokenCount
    }
  }
}
