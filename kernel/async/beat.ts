import type { Clock, Timer } from '../contract/services/clock.js'

/** One timer for all that look at something now and then: a machine that wakes once for them goes back to sleep. */
export class Beat {
  readonly #clock: Clock
  readonly #everyMs: number
  readonly #waiting = new Set<() => void>()
  #timer: Timer | null = null

  constructor (clock: Clock, everyMs: number) {
    this.#clock = clock
    this.#everyMs = everyMs
  }

  /** Resolves with the next beat, which others may have waited for already, or at once when the signal aborts; never rejects. */
  next (signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve()
    return new Promise(resolve => {
      const done = (): void => {
        signal.removeEventListener('abort', done)
        this.#waiting.delete(done)
        if (this.#waiting.size === 0) this.#rest()
        resolve()
      }
      signal.addEventListener('abort', done)
      this.#waiting.add(done)
      this.#timer ??= this.#clock.setTimer(this.#everyMs, () => {
        this.#timer = null
        for (const waits of [...this.#waiting]) waits()
      })
    })
  }

  #rest (): void {
    this.#timer?.cancel()
    this.#timer = null
  }
}
