import type { Clock } from '../contract/index.js'

/** The wall clock drifts, and is read a moment after the monotonic one; a larger difference means that it was set. */
const SET_BEYOND_MS = 500

/**
 * Moments of the monotonic clock as wall time, for what is shown and stored, and back. Durations are measured on the
 * monotonic clock alone: the wall clock may be set at any moment. A moment keeps its wall time until that happens.
 */
export class WallTime {
  readonly #clock: Clock
  #offset: number

  constructor (clock: Clock) {
    this.#clock = clock
    this.#offset = clock.now() - clock.monotonic()
  }

  /** Epoch milliseconds of a monotonic moment. */
  of (monotonicMs: number): number {
    const offset = this.#clock.now() - this.#clock.monotonic()
    if (Math.abs(offset - this.#offset) > SET_BEYOND_MS) this.#offset = offset
    return Math.round(monotonicMs + this.#offset)
  }

  /** The monotonic moment of a stored time; one that the wall clock has not reached yet is now. */
  back (epochMs: number): number {
    return this.#clock.monotonic() - Math.max(0, this.#clock.now() - epochMs)
  }
}
