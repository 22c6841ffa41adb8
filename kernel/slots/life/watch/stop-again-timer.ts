import type { Clock, Timer } from '../../../contract/index.js'

/** Tells a slot when it is time to remove an engine again that could not be removed. */
export class StopAgainTimer {
  readonly #clock: Clock
  readonly #due: () => void
  #at: number | null = null
  #timer: Timer | null = null

  constructor (clock: Clock, due: () => void) {
    this.#clock = clock
    this.#due = due
  }

  /** @param at on the monotonic clock; null ends it */
  follow (at: number | null): void {
    if (at === this.#at) return
    this.#timer?.cancel()
    this.#at = at
    this.#timer = at === null ? null : this.#clock.setTimer(Math.max(1, at - this.#clock.monotonic()), this.#due)
  }
}
