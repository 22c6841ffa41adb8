import type { Clock, Timer } from '../contract/services/clock.js'

/**
 * The present state of something, followed by any number of readers at their own pace: one who is slow misses what came in
 * between and never the last. Changes are told at most every `everyMs`, `now` at once.
 */
export class Latest<T> {
  readonly #clock: Clock
  readonly #everyMs: number
  readonly #read: () => T
  #version = 0
  #closed = false
  #toldAt = -Infinity
  #timer: Timer | null = null
  #wake: Array<() => void> = []

  constructor (clock: Clock, everyMs: number, read: () => T) {
    this.#clock = clock
    this.#everyMs = everyMs
    this.#read = read
  }

  changed (): void {
    if (this.#timer !== null || this.#closed) return
    const wait = this.#toldAt + this.#everyMs - this.#clock.monotonic()
    if (wait <= 0) this.now()
    else this.#timer = this.#clock.setTimer(wait, () => this.now())
  }

  now (): void {
    this.#timer?.cancel()
    this.#timer = null
    this.#toldAt = this.#clock.monotonic()
    this.#version++
    for (const wake of this.#wake.splice(0)) wake()
  }

  /** The last state is told, then every reader ends. */
  close (): void {
    this.#closed = true
    this.now()
  }

  /** The state now, after every change, and when nothing changed for `aliveMs`. */
  async* follow (signal: AbortSignal, aliveMs: number): AsyncGenerator<T> {
    let seen = this.#version
    yield this.#read()
    while (!this.#closed || seen !== this.#version) {
      if (seen === this.#version) await this.#change(signal, aliveMs)
      if (signal.aborted) return
      seen = this.#version
      yield this.#read()
    }
  }

  #change (signal: AbortSignal, aliveMs: number): Promise<void> {
    return new Promise(resolve => {
      const done = (): void => {
        timer.cancel()
        signal.removeEventListener('abort', done)
        this.#wake = this.#wake.filter(wake => wake !== done)
        resolve()
      }
      const timer = this.#clock.setTimer(aliveMs, done)
      signal.addEventListener('abort', done, { once: true })
      this.#wake.push(done)
      if (signal.aborted) done()
    })
  }
}
