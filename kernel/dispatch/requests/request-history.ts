import { requestSurfaces, type Clock, type RequestSummary, type RequestSurface } from '../../contract/index.js'

/** As many of the latest requests are remembered. */
const KEPT = 8192

/** Ended `/v1` requests of clients: when, how long, on which surface, and whether they failed. Fixed size. */
export class RequestHistory {
  readonly #clock: Clock
  /** Monotonic milliseconds. */
  readonly #ended = new Float64Array(KEPT)
  readonly #ms = new Float64Array(KEPT)
  readonly #surface = new Uint8Array(KEPT)
  readonly #failed = new Uint8Array(KEPT)
  #count = 0

  constructor (clock: Clock) {
    this.#clock = clock
  }

  /** @param startedAt on the monotonic clock */
  ended (surface: RequestSurface, startedAt: number, failed: boolean): void {
    const i = this.#count++ % KEPT
    this.#ended[i] = this.#clock.monotonic()
    this.#ms[i] = this.#ended[i]! - startedAt
    this.#surface[i] = requestSurfaces.indexOf(surface)
    this.#failed[i] = failed ? 1 : 0
  }

  summary (windowS: number): RequestSummary {
    const now = this.#clock.monotonic()
    const kept = Math.min(this.#count, KEPT)
    const times: number[] = []
    const counts = new Map<RequestSurface, number>()
    let errors = 0
    for (let back = 1; back <= kept; back++) {
      const i = (this.#count - back) % KEPT
      if (now - this.#ended[i]! > windowS * 1000) break
      const surface = requestSurfaces[this.#surface[i]!]!
      counts.set(surface, (counts.get(surface) ?? 0) + 1)
      times.push(this.#ms[i]!)
      errors += this.#failed[i]!
    }
    // with more requests than are remembered, the rate is that of the time which they cover
    const isCut = times.length === KEPT
    const coveredMs = isCut ? Math.max(1, now - this.#ended[this.#count % KEPT]!) : windowS * 1000
    times.sort((a, b) => a - b)
    return {
      requests: times.length,
      perMinute: times.length * 60_000 / coveredMs,
      p50Ms: percentile(times, 0.5),
      p95Ms: percentile(times, 0.95),
      surfaces: [...counts].map(([surface, count]) => ({ surface, count })).sort((a, b) => b.count - a.count),
      errors
    }
  }
}

/** Nearest rank; null of nothing. @param sorted ascending. Pure. */
export function percentile (sorted: readonly number[], share: number): number | null {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? null
}
