import type { Clock, Timer } from 'svc-gateway/plugin'

export interface DeadlinesOptions {
  readonly clock: Clock
  /** Asked at every use: a changed limit counts for entries that wait already. */
  readonly ttlMs: () => number
  /** Called when entries may have expired, with those that have. */
  readonly onDue: (ids: readonly string[]) => void
}

const RETRY_MS = 1000

/**
 * When pending entries expire. Time that passes while the gateway runs is measured on the monotonic clock, so that setting the
 * wall clock expires nothing and keeps nothing; what an entry has waited before a start is known by the wall clock alone.
 */
export class Deadlines {
  readonly #options: DeadlinesOptions
  /** Monotonic moments at which entries began to wait. */
  readonly #since = new Map<string, number>()
  #timer: Timer | null = null

  constructor (options: DeadlinesOptions) {
    this.#options = options
  }

  /** `enqueuedAt` in epoch milliseconds; one in the future, of a clock that was set back, is now. */
  add (id: string, enqueuedAt: number): void {
    const { clock } = this.#options
    this.#since.set(id, clock.monotonic() - Math.max(0, clock.now() - enqueuedAt))
    this.arm()
  }

  drop (id: string): void {
    this.#since.delete(id)
  }

  due (): readonly string[] {
    const { clock, ttlMs } = this.#options
    const [now, ttl] = [clock.monotonic(), ttlMs()]
    return [...this.#since].filter(([, since]) => now - since >= ttl).map(([id]) => id)
  }

  /** Epoch milliseconds by the wall clock of this moment; null for what does not wait. */
  expiresAt (id: string): number | null {
    const since = this.#since.get(id)
    const { clock, ttlMs } = this.#options
    return since === undefined ? null : clock.now() + Math.max(0, since + ttlMs() - clock.monotonic())
  }

  /** To be called as well when the limit changes. */
  arm (leastMs = 0): void {
    this.#timer?.cancel()
    this.#timer = null
    if (this.#since.size === 0) return
    const { clock, ttlMs } = this.#options
    const wait = Math.min(...this.#since.values()) + ttlMs() - clock.monotonic()
    this.#timer = clock.setTimer(Math.max(leastMs, Math.ceil(wait)), () => {
      this.#timer = null
      this.#options.onDue(this.due())
      // what a full disk kept from expiring is still due
      this.arm(RETRY_MS)
    })
  }

  close (): void {
    this.#timer?.cancel()
    this.#since.clear()
  }
}
