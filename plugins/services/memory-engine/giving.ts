/** What a client has asked for of an answer that comes in pieces. */
export class Demand {
  #asked = 0
  #wake: (() => void) | null = null

  /** One piece more is asked for. */
  more (): void {
    this.#asked += 1
    this.#wake?.()
  }

  /** Resolves when a piece is asked for that has not been given; rejects with the signal's reason. */
  async next (signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (this.#asked === 0) {
      await new Promise<void>((resolve, reject) => {
        const left = (): void => reject(signal.reason as Error)
        signal.addEventListener('abort', left, { once: true })
        const wake = (): void => {
          signal.removeEventListener('abort', left)
          resolve()
        }
        this.#wake = wake
      })
      this.#wake = null
    }
    this.#asked -= 1
  }
}
