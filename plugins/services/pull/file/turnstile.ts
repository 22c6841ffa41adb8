/** Lets so many in at a time; the others wait in order. */
export class Turnstile {
  #free: number
  #line: Array<() => void> = []

  constructor (places: number) {
    this.#free = places
  }

  /** Resolves with the way out; taken again it does nothing. Rejects with the signal's reason for one who leaves the line. */
  enter (signal: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason as Error)
      const leave = (): void => {
        this.#line = this.#line.filter(waiting => waiting !== go)
        reject(signal.reason as Error)
      }
      const go = (): void => {
        signal.removeEventListener('abort', leave)
        this.#free--
        let isOut = false
        resolve(() => {
          if (isOut) return
          isOut = true
          this.#next()
        })
      }
      if (this.#free > 0) return go()
      signal.addEventListener('abort', leave, { once: true })
      this.#line.push(go)
    })
  }

  #next (): void {
    this.#free++
    this.#line.shift()?.()
  }
}
