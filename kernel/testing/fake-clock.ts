import type { Clock, Timer } from '../contract/index.js'

interface Entry {
  readonly at: number
  readonly order: number
  readonly fn: () => void
}

/** Where monotonic time stands at the start. */
const MACHINE_UP_MS = 3_600_000

/**
 * A clock that stands still until it is moved. Timers fire in order of time, then of setting; between two of
 * them all promises that can go on do so. Wall time and monotonic time have different origins, as on a machine: code
 * that mixes them up is off by years. `setWall` is what an operator or NTP does.
 */
export class FakeClock implements Clock {
  /** Monotonic. */
  #now = MACHINE_UP_MS
  /** What wall time is ahead of it. */
  #wall: number
  #order = 0
  readonly #timers = new Set<Entry>()

  /** @param start epoch milliseconds */
  constructor (start = 1_700_000_000_000) {
    this.#wall = start - MACHINE_UP_MS
  }

  now (): number { return this.#now + this.#wall }
  monotonic (): number { return this.#now }
  /** Timers that are armed: what a clean end leaves at zero. */
  get pending (): number { return this.#timers.size }

  setTimer (ms: number, fn: () => void): Timer {
    const entry = { at: this.#now + Math.max(0, ms), order: this.#order++, fn }
    this.#timers.add(entry)
    return { cancel: () => { this.#timers.delete(entry) } }
  }

  /** Sets the wall clock; no timer fires for it, and monotonic time goes on as it was. */
  setWall (epochMs: number): void {
    this.#wall = epochMs - this.#now
  }

  /** Moves time forward, firing what falls due on the way. */
  async advance (ms: number): Promise<void> {
    const end = this.#now + ms
    await settle()
    for (let next = this.#next(end); next !== null; next = this.#next(end)) {
      this.#timers.delete(next)
      this.#now = Math.max(this.#now, next.at)
      next.fn()
      await settle()
    }
    this.#now = end
  }

  #next (end: number): Entry | null {
    let first: Entry | null = null
    for (const entry of this.#timers) {
      if (entry.at > end) continue
      if (first === null || entry.at < first.at || (entry.at === first.at && entry.order < first.order)) first = entry
    }
    return first
  }
}

/** Lets every promise that can go on do so: a turn of the event loop runs after all microtasks. */
export function settle (): Promise<void> {
  return new Promise(resolve => { setImmediate(resolve) })
}
