import { backoffMs, crashAttempts, mayHeal, type Clock, type SvcError } from 'svc-gateway/plugin'
import { mcpError } from './errors.js'

interface Failure {
  readonly attempts: number
  readonly at: number
  readonly message: string
  readonly heals: boolean
}

/** How a server has failed, and for how long it is left alone for that. */
export class Failures {
  readonly #clock: Clock
  #last: Failure | null = null
  /** In a row: a start that went well ends none, time without a crash does. */
  #attempts = 0

  constructor (clock: Clock) {
    this.#clock = clock
  }

  /** What it failed with; null while nothing is wrong, or another try is under way. */
  get message (): string | null { return this.#last?.message ?? null }

  /** Whether it failed, and another try may go well. */
  get mayHeal (): boolean { return this.#last?.heals === true }

  /** @param readyAt since when it had run, monotonic; null for a failed start */
  add (error: SvcError, readyAt: number | null): void {
    const now = this.#clock.monotonic()
    const heals = mayHeal(error)
    this.#attempts = heals ? crashAttempts(this.#attempts === 0 ? null : { attempts: this.#attempts }, readyAt, now) : 1
    this.#last = { attempts: this.#attempts, at: now, message: error.message, heals }
  }

  /** It is tried again; the failures before count on. */
  retried (): void {
    this.#last = null
  }

  forgive (): void {
    this.#last = null
    this.#attempts = 0
  }

  /** How long it is still left alone. */
  pauseMs (): number {
    if (this.#last === null) return 0
    return Math.max(0, this.#last.at + backoffMs(this.#last.attempts) - this.#clock.monotonic())
  }

  /** What a caller is told meanwhile. */
  paused (id: string, pauseMs: number): SvcError {
    const seconds = Math.ceil(pauseMs / 1000)
    return mcpError('mcp.server_failed',
      `tool server ${id} failed ${this.#attempts} times; the next attempt is in ${seconds} s, or at once with POST /api/mcp/${id}/restart. The last failure: ${this.message}`,
      { details: { id, retry_after_s: seconds } })
  }
}
