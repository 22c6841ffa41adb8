import type { Clock, SlotMetrics } from '../../../contract/index.js'

/** What `read` averages over. */
const WINDOW_S = 10
/** The longest history that can be asked for. */
export const KEPT_S = 3600

/**
 * Token and latency counters of one slot or upstream: totals, and the tokens of every second of the last hour. Fixed size,
 * and no size at all before the first token.
 */
export class Throughput {
  readonly #clock: Clock
  /** Ring of one bucket per second; a bucket is valid only in its own second. */
  #ring: { readonly tokens: Uint32Array, readonly seconds: Uint32Array } | null = null
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
    const { tokens, seconds } = this.#ring ??= { tokens: new Uint32Array(KEPT_S), seconds: new Uint32Array(KEPT_S) }
    const second = this.#second()
    const i = second % KEPT_S
    if (seconds[i] !== second) {
      seconds[i] = second
      tokens[i] = 0
    }
    tokens[i]! += count
    this.#tokenCount += count
  }

  /** Milliseconds from hand-off to the first content-bearing event. */
  firstToken (ms: number): void {
    this.#ttftMs = ms
  }

  /** Tokens of whole seconds of the monotonic clock: from the first on, up to the second and without it. */
  tokensBetween (from: number, to: number): number {
    if (this.#ring === null) return 0
    const { tokens, seconds } = this.#ring
    let sum = 0
    for (let second = Math.max(0, from, this.#second() - KEPT_S + 1); second < to; second++) {
      const i = second % KEPT_S
      if (seconds[i] === second) sum += tokens[i]!
    }
    return sum
  }

  read (): SlotMetrics {
    const end = this.#second() + 1
    return {
      tokensPerSec: this.tokensBetween(end - WINDOW_S, end) / WINDOW_S,
      ttftMs: this.#ttftMs,
      requestCount: this.#requestCount,
      tokenCount: this.#tokenCount
    }
  }

  #second (): number {
    return Math.floor(this.#clock.monotonic() / 1000)
  }
}
