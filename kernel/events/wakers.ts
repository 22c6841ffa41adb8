/** Readers that wait for something new to read. */
export class Wakers {
  #waiting: Array<() => void> = []
  #closed = false

  get closed (): boolean { return this.#closed }

  wake (): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  /** Wakes all waiters for good. */
  close (): void {
    this.#closed = true
    this.wake()
  }

  /** Resolves at the next `wake`, or when the signal aborts; never rejects. */
  wait (signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#closed) return Promise.resolve()
    return new Promise(resolve => {
      const done = (): void => {
        signal.removeEventListener('abort', done)
        this.#waiting = this.#waiting.filter(other => other !== done)
        resolve()
      }
      this.#waiting.push(done)
      signal.addEventListener('abort', done, { once: true })
    })
  }
}
