import type { Clock, SvcError } from '../../contract/index.js'
import { SlotWaiters } from '../life/slot-waiters.js'
import type { Wants } from '../schedule/scheduled-slot.js'

/** Those who wait for any of a slot's replicas, counted by what they want. */
export class ReplicaLine {
  readonly #waiters: SlotWaiters
  readonly #clock: Clock
  #waiting: Record<Wants, number> = { worker: 0, lease: 0, ready: 0 }

  /** @param left told once one has left by itself */
  constructor (clock: Clock, left: () => void) {
    this.#clock = clock
    this.#waiters = new SlotWaiters(wants => {
      this.#waiting[wants]--
      left()
    })
  }

  get workers (): number { return this.#waiting.worker }
  /** They want no worker. */
  get others (): number { return this.#waiting.lease + this.#waiting.ready }
  /** Those who want a lease, with a worker or without. */
  get leases (): number { return this.#waiting.worker + this.#waiting.lease }
  get all (): number { return this.workers + this.others }
  /** Those that another replica may be started for: the ones of the low class not before they have waited for long. */
  get pressing (): number { return this.all - this.#waiters.uncounted(this.#clock.monotonic()) }

  /** Since when one of those has waited for a worker, which may be yet to come; null when none waits for one. */
  pressingSince (): number | null { return this.#waiters.countsSince() }

  /**
   * Rejects with the reason of the signal, or with the refusal.
   * @param value made at the moment it is let in
   */
  wait<T> (wants: Wants, low: boolean, signal: AbortSignal, value: () => T): Promise<T> {
    this.#waiting[wants]++
    return this.#waiters.wait({ wants, low, since: this.#clock.monotonic() }, signal, () => {
      this.#waiting[wants]--
      return value()
    })
  }

  /** The next one gets a worker. */
  letOneIn (): void { this.#waiters.letIn(1, false) }

  letOthersIn (): void { this.#waiters.letIn(0, true) }

  refuse (error: () => SvcError): void {
    this.#waiting = { worker: 0, lease: 0, ready: 0 }
    this.#waiters.refuse(error)
  }
}
