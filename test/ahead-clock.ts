import type { Clock, Timer } from '../kernel/contract/index.js'
import { createSystemClock } from '../kernel/state/system-clock.js'

interface Entry {
  /** On the monotonic clock. */
  readonly at: number
  readonly fn: () => void
  timer: Timer
}

/**
 * The machine's clock, until a test moves it ahead: for gateways with real engines, whose answers take real time, and
 * with waits of hours. Wall time and monotonic time move together, as while a gateway runs or is down.
 */
export class AheadClock implements Clock {
  readonly #system = createSystemClock()
  readonly #timers = new Set<Entry>()
  #ahead = 0

  now (): number { return this.#system.now() + this.#ahead }
  monotonic (): number { return this.#system.monotonic() + this.#ahead }

  setTimer (ms: number, fn: () => void): Timer {
    const entry: Entry = { at: this.monotonic() + ms, fn, timer: { cancel: () => {} } }
    this.#arm(entry)
    this.#timers.add(entry)
    return {
      cancel: () => {
        entry.timer.cancel()
        this.#timers.delete(entry)
      }
    }
  }

  /** What falls due on the way fires soon. */
  jump (ms: number): void {
    this.#ahead += ms
    for (const entry of [...this.#timers].sort((a, b) => a.at - b.at)) {
      entry.timer.cancel()
      this.#arm(entry)
    }
  }

  #arm (entry: Entry): void {
    entry.timer = this.#system.setTimer(entry.at - this.monotonic(), () => {
      this.#timers.delete(entry)
      entry.fn()
    })
  }
}
