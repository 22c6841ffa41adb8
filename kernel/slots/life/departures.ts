import { svcError, type SvcError } from '../../contract/index.js'
import { replicaWords } from '../schedule/replica-names.js'
import type { ScheduledSlot } from '../schedule/scheduled-slot.js'

interface Waiter {
  readonly isGone: (core: ScheduledSlot) => boolean
  readonly resolve: () => void
  readonly reject: (error: SvcError) => void
}

/** Those who wait for the engine of a slot to be gone. */
export class Departures {
  readonly #slot: string
  readonly #waiters = new Set<Waiter>()

  constructor (slot: string) {
    this.#slot = slot
  }

  /** Resolves when the engine that runs now, or that is being loaded now, is gone; rejects when it resists its removal. */
  of (core: ScheduledSlot): Promise<void> {
    const { engine, generation } = core
    const isGone = ({ op, engine: there, generation: current }: ScheduledSlot): boolean => {
      const isSameLaunch = op === 'launch' && current === generation
      const isSameEngine = there !== null && there.id === engine?.id
      return !isSameLaunch && !isSameEngine && op !== 'stop'
    }
    if (isGone(core)) return Promise.resolve()
    return new Promise((resolve, reject) => { this.#waiters.add({ isGone, resolve, reject }) })
  }

  /** The slot has changed. */
  settle (core: ScheduledSlot): void {
    if (this.#waiters.size === 0) return
    for (const waiter of [...this.#waiters]) {
      if (!core.stuck && !waiter.isGone(core)) continue
      this.#waiters.delete(waiter)
      if (core.stuck) waiter.reject(svcError('runtime.failed', `slot ${replicaWords(this.#slot)}: ${core.message}`))
      else waiter.resolve()
    }
  }

  /** Nothing more is told to those who are left. */
  end (error: SvcError): void {
    for (const waiter of this.#waiters) waiter.reject(error)
    this.#waiters.clear()
  }
}
