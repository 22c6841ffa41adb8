import type { Clock } from 'svc-gateway/plugin'

const WINDOW_MS = 8_000
const SLICE_MS = 500

/** Bytes a second over the last seconds, in slices of half a second, so that it costs the same however fast it goes. */
export class Meter {
  readonly #clock: Clock
  readonly #slices: Array<{ readonly at: number, bytes: number }> = []

  constructor (clock: Clock) {
    this.#clock = clock
  }

  add (bytes: number): void {
    const now = this.#clock.monotonic()
    const last = this.#slices.at(-1)
    if (last !== undefined && now - last.at < SLICE_MS) last.bytes += bytes
    else this.#slices.push({ at: now, bytes })
    this.#forget(now)
  }

  get bytesPerSecond (): number {
    const now = this.#clock.monotonic()
    this.#forget(now)
    const bytes = this.#slices.reduce((sum, slice) => sum + slice.bytes, 0)
    const ms = Math.max(SLICE_MS, now - (this.#slices[0]?.at ?? now))
    return Math.round(bytes / ms * 1000)
  }

  #forget (now: number): void {
    while (this.#slices.length > 0 && now - this.#slices[0]!.at >= WINDOW_MS) this.#slices.shift()
  }
}
