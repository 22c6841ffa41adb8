interface Waiter<S> {
  readonly take: (slot: S) => void
}

/** A fixed number of slots and a queue before them, first come, first served. */
export class SlotPool<S> {
  readonly slots: readonly S[]
  readonly #idle: Set<S>
  readonly #waiters = new Set<Waiter<S>>()

  constructor (slots: readonly S[]) {
    this.slots = slots
    this.#idle = new Set(slots)
  }

  get waiting (): number {
    return this.#waiters.size
  }

  get busy (): number {
    return this.slots.length - this.#idle.size
  }

  isBusy (slot: S): boolean {
    return !this.#idle.has(slot)
  }

  /**
   * Waits for a slot; of several idle ones takes that with the highest `score`. The caller must `release` it.
   * Rejects with the signal's reason, and then holds nothing.
   */
  acquire (signal: AbortSignal, score: (slot: S) => number = () => 0): Promise<S> {
    if (signal.aborted) return Promise.reject(signal.reason as Error)
    const best = [...this.#idle].reduce<S | undefined>((a, b) => a === undefined || score(b) > score(a) ? b : a, undefined)
    if (best !== undefined) {
      this.#idle.delete(best)
      return Promise.resolve(best)
    }
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiters.delete(waiter)
        reject(signal.reason as Error)
      }
      const waiter = {
        take: (slot: S) => {
          signal.removeEventListener('abort', leave)
          resolve(slot)
        }
      }
      this.#waiters.add(waiter)
      signal.addEventListener('abort', leave, { once: true })
    })
  }

  /** Hands the slot to the one who waited longest, or puts it back. */
  release (slot: S): void {
    for (const waiter of this.#waiters) {
      this.#waiters.delete(waiter)
      waiter.take(slot)
      return
    }
    this.#idle.add(slot)
  }
}
