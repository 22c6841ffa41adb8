import type { Wants } from './scheduled-slot.js'

/** What one who waits says about its place in the line. */
export interface InLine {
  readonly wants: Wants
  /** Stands behind those that are not, until it has waited for `LOW_WAITS_MS`. */
  readonly low: boolean
  /** When it came, on the monotonic clock. */
  readonly since: number
}

/**
 * How long newcomers of the normal class go before a request of the low one. From then on it is served like one that
 * comes at that moment, so that no stream of normal requests starves it.
 */
export const LOW_WAITS_MS = 30_000

/**
 * Those who wait for a slot. Those who want a worker stand in two lines, each in the order they came; the first of
 * either is known without looking at the others.
 */
export class WaitingLine<W extends InLine> {
  readonly #normal = new Set<W>()
  readonly #low = new Set<W>()
  /** They want no worker: all of them are let in at once. */
  readonly #others = new Set<W>()

  add (waiter: W): void {
    this.#of(waiter).add(waiter)
  }

  delete (waiter: W): void {
    this.#of(waiter).delete(waiter)
  }

  all (): readonly W[] {
    return [...this.#normal, ...this.#low, ...this.#others]
  }

  others (): readonly W[] {
    return [...this.#others]
  }

  /** Who gets the next free worker; it stays in the line until it is taken out. */
  next (): W | null {
    const [normal = null] = this.#normal
    const [low = null] = this.#low
    if (normal === null || low === null) return normal ?? low
    return low.since + LOW_WAITS_MS <= normal.since ? low : normal
  }

  /**
   * Since when one has waited for a worker that counts: of the normal class since it came, of the low one since
   * `LOW_WAITS_MS` later, which may be yet to come. Null when none waits.
   */
  countsSince (): number | null {
    const [normal] = this.#normal
    const [low] = this.#low
    const times = [...normal === undefined ? [] : [normal.since], ...low === undefined ? [] : [low.since + LOW_WAITS_MS]]
    return times.length === 0 ? null : Math.min(...times)
  }

  /** How many wait that do not count yet: those of the low class, until the first of them does. */
  uncounted (now: number): number {
    const [low] = this.#low
    return low === undefined || low.since + LOW_WAITS_MS <= now ? 0 : this.#low.size
  }

  #of ({ wants, low }: W): Set<W> {
    if (wants !== 'worker') return this.#others
    return low ? this.#low : this.#normal
  }
}
