const QUEUE = 64

/**
 * Full snapshots for any number of readers. A reader that falls behind loses the oldest ones: the next is as
 * good, because each is complete. Nothing waits for a reader.
 */
export class SnapshotFeed<T> {
  readonly #readers = new Set<(value: T) => void>()
  #closed = false
  readonly #closers = new Set<() => void>()

  publish (value: T): void {
    for (const reader of this.#readers) reader(value)
  }

  /** Ends every reader. */
  close (): void {
    this.#closed = true
    for (const close of [...this.#closers]) close()
  }

  get size (): number { return this.#readers.size }

  /** `now()` and then what is published, until the signal aborts or the feed closes. Subscribes at the first read. */
  async* read (now: () => T, signal: AbortSignal): AsyncGenerator<T> {
    const queue: T[] = [now()]
    let wake: (() => void) | null = null
    let ended = this.#closed || signal.aborted
    const push = (value: T): void => {
      if (queue.length >= QUEUE) queue.shift()
      queue.push(value)
      wake?.()
    }
    const end = (): void => {
      ended = true
      wake?.()
    }
    this.#readers.add(push)
    this.#closers.add(end)
    signal.addEventListener('abort', end, { once: true })
    try {
      for (;;) {
        while (queue.length > 0) yield queue.shift()!
        if (ended) return
        await new Promise<void>(resolve => { wake = resolve })
        wake = null
      }
    } finally {
      this.#readers.delete(push)
      this.#closers.delete(end)
      signal.removeEventListener('abort', end)
    }
  }
}
