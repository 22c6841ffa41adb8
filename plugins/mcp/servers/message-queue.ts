import type { SseEvent } from 'svc-gateway/plugin'

/** Who does not read hears of the latest only. */
const MOST_WAITING = 64

/** Messages on their way into an event stream. */
export class MessageQueue {
  #waiting: object[] = []
  #isEnded = false
  #wake: () => void = () => {}

  push (message: object): void {
    if (this.#isEnded) return
    if (this.#waiting.length >= MOST_WAITING) this.#waiting.shift()
    this.#waiting.push(message)
    this.#wake()
  }

  /** After what waits. */
  end (): void {
    this.#isEnded = true
    this.#wake()
  }

  /** Ends with the queue or the signal. One reader. */
  async* events (signal: AbortSignal): AsyncGenerator<SseEvent> {
    const wake = (): void => this.#wake()
    signal.addEventListener('abort', wake, { once: true })
    try {
      while (!signal.aborted) {
        for (const data of this.#waiting.splice(0)) yield { event: 'message', data }
        if (signal.aborted || (this.#isEnded && this.#waiting.length === 0)) return
        if (this.#waiting.length === 0) await new Promise<void>(resolve => { this.#wake = resolve })
      }
    } finally {
      this.#isEnded = true
      signal.removeEventListener('abort', wake)
    }
  }
}
