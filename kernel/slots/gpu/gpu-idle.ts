import type { Clock, Timer } from '../../contract/index.js'

export interface GpuIdleDeps {
  readonly clock: Clock
  /** When image mode is due to end; null when nothing would end it. On the monotonic clock. Read every time. */
  readonly dueAt: () => number | null
  /** Whether an image engine has work, also such as did not come through the gateway. */
  readonly busy: (signal: AbortSignal) => Promise<boolean>
  readonly used: () => void
  /** Puts the time of the last use on disk if it changed, so that a restart does not end image mode early. Never rejects. */
  readonly keep: () => Promise<void>
  readonly end: () => void
}

const LOOK_TIMEOUT_MS = 5_000
/** A gateway that is killed forgets this much of the last use at most. */
const KEEP_MS = 30_000

/**
 * The timer that ends image mode, and until then keeps the time of the last use. It looks at the clock when it fires, so
 * that requests need not touch it.
 */
export class GpuIdle {
  readonly #deps: GpuIdleDeps
  readonly #closing = new AbortController()
  #timer: Timer | null = null

  constructor (deps: GpuIdleDeps) {
    this.#deps = deps
  }

  /** What decides the time has changed. */
  arm (): void {
    this.#timer?.cancel()
    this.#timer = null
    const at = this.#deps.dueAt()
    if (at === null || this.#closing.signal.aborted) return
    const pauseMs = Math.min(KEEP_MS, Math.max(1, at - this.#deps.clock.monotonic()))
    this.#timer = this.#deps.clock.setTimer(pauseMs, () => {
      this.#timer = null
      void this.#look()
    })
  }

  close (): void {
    this.#closing.abort()
    this.#timer?.cancel()
  }

  async #look (): Promise<void> {
    const { busy, used, keep, end } = this.#deps
    await keep()
    if (this.#isDue()) {
      if (await this.#bounded(busy)) used()
      else if (this.#isDue()) end()
    }
    if (this.#timer === null) this.arm()
  }

  #isDue (): boolean {
    const at = this.#deps.dueAt()
    return at !== null && at <= this.#deps.clock.monotonic() && !this.#closing.signal.aborted
  }

  async #bounded (busy: (signal: AbortSignal) => Promise<boolean>): Promise<boolean> {
    const late = new AbortController()
    const timer = this.#deps.clock.setTimer(LOOK_TIMEOUT_MS, () => late.abort())
    try {
      return await busy(AbortSignal.any([late.signal, this.#closing.signal]))
    } finally {
      timer.cancel()
    }
  }
}
