import type { Clock, Timer } from '../../contract/index.js'
import { canServe, usedAt } from '../schedule/leases.js'
import type { ScheduledSlot, SlotInput } from '../schedule/scheduled-slot.js'
import type { SlotActions } from './slot-actions.js'

export interface IdleTimerDeps {
  readonly clock: Clock
  readonly times: Pick<SlotActions, 'softIdleMs' | 'idleTimeoutMs'>
  readonly core: () => ScheduledSlot
  /** Nothing more is armed: the slot takes no more requests. */
  readonly isClosed: () => boolean
  readonly feed: (input: SlotInput) => unknown
}

/** One timer per slot, armed only while nothing runs; it looks at the clock when it fires, so requests cost nothing. */
export class IdleTimer {
  readonly #deps: IdleTimerDeps
  #timer: Timer | null = null

  constructor (deps: IdleTimerDeps) {
    this.#deps = deps
  }

  /** Unless it is armed. */
  follow (): void {
    if (this.#timer === null) this.arm()
  }

  arm (): void {
    const { clock, times, core, isClosed } = this.#deps
    const { state, inFlight } = core()
    if (isClosed() || !canServe(core()) || inFlight > 0) return
    const soft = state === 'ready' ? times.softIdleMs() : null
    const next = Math.min(soft ?? Infinity, times.idleTimeoutMs() ?? Infinity)
    if (next === Infinity) return
    this.#timer = clock.setTimer(Math.max(1, next - this.#quietMs()), () => {
      this.#timer = null
      this.#look()
    })
  }

  disarm (): void {
    this.#timer?.cancel()
    this.#timer = null
  }

  #look (): void {
    const { times, core, feed } = this.#deps
    if (!canServe(core()) || core().inFlight > 0) return
    const quietMs = this.#quietMs()
    const ttl = times.idleTimeoutMs()
    const soft = times.softIdleMs()
    if (ttl !== null && quietMs >= ttl) feed({ type: 'evict', reason: `unloaded after ${Math.round(quietMs / 1000)} s without a request` })
    else if (soft !== null && quietMs >= soft) feed({ type: 'soft-idle' })
    this.follow()
  }

  /** Since the last request, or since it came up. */
  #quietMs (): number {
    return this.#deps.clock.monotonic() - usedAt(this.#deps.core())
  }
}
