import type { Clock, Timer } from '../contract/index.js'

export interface GpuIdleDeps {
  readonly clock: Clock
  /** When image mode is due to end; null when nothing would end it. On the monotonic clock. Read every time. */
  readonly dueAt: () => number | null
  /** Whether an image engine has work, also such as did not come through the gateway. */
  readonly busy: (signal: AbortSignal) => Promise<boolean>
  readonly used: () => void
  readonly end: () => void
}

const LOOK_TIMEOUT_MS = 5_000

/** The timer that ends image mode. It looks at the clock when it fires, so that requests need not touch it. */
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
    this.#timer = this.#deps.clock.setTimer(Math.max(1, at - this.#deps.clock.monotonic()), () => {
      this.#timer = null
      void this.#look()
    })
  }

  close (): void {
    this.#closing.abort()
    this.#timer?.cancel()
  }

  async #look (): Promise<void> {
    const { busy, used, end } = this.#deps
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
