import { isSvcError, type RequestPriority, type SlotGate, type SlotLease } from '../contract/index.js'
import type { SlotFleet } from './life/slot-fleet.js'
import type { SlotOwner } from './life/slot-owner.js'
import type { PrefixSource } from './replicas/prefix-places.js'
import { MOVED, type ReplicaSets } from './replicas/replica-sets.js'
import type { ShadowSlots } from './shadow-slots.js'

export interface SlotLendingDeps {
  readonly fleet: SlotFleet
  readonly shadows: ShadowSlots
  readonly sets: ReplicaSets
  readonly gate: SlotGate
}

/** Engines for requests: a slot's own, one of its replicas, or the one that another slot has. */
export class SlotLending {
  readonly #deps: SlotLendingDeps

  constructor (deps: SlotLendingDeps) {
    this.#deps = deps
  }

  /** @param source what is asked, for a slot of several replicas */
  tryAcquire (name: string, light: boolean, source: PrefixSource | null): SlotLease | null {
    const { fleet, gate, sets, shadows } = this.#deps
    const set = sets.find(name)
    if (set !== null) return set.tryAcquire(light, source)
    const shadow = shadows.find(name)
    if (!gate.lends(shadow?.anchor ?? name)) return null
    if (shadow !== null) return shadows.tryAcquire(shadow, light)
    return fleet.owner(name).tryAcquire(light)
  }

  async acquire (
    name: string, signal: AbortSignal, light: boolean, priority: RequestPriority, source: PrefixSource | null
  ): Promise<SlotLease> {
    const low = priority === 'low'
    const { sets, shadows } = this.#deps
    const set = sets.find(name)
    if (set !== null) {
      try {
        return await this.#told(name, set.acquire(signal, { light, low, source }))
      } catch (error) {
        if (!hasMoved(error)) throw error
      }
    }
    const shadow = shadows.find(name)
    if (shadow !== null) return await shadows.acquire(shadow, signal, light, low)
    return await this.admitted(name, signal, owner => owner.acquire(signal, light, { low }))
  }

  async ensureReady (name: string, signal: AbortSignal): Promise<void> {
    const { sets, shadows } = this.#deps
    const set = sets.find(name)
    if (set !== null) {
      try {
        return await this.#told(name, set.ensureReady(signal))
      } catch (error) {
        if (!hasMoved(error)) throw error
      }
    }
    const shadow = shadows.find(name)
    if (shadow !== null) return (await shadows.acquire(shadow, signal, true)).release()
    await this.admitted(name, signal, owner => owner.ensureReady(signal))
  }

  /**
   * Hands a slot's owner over once the slot may have its GPU. Between the last answer of the arbiter and `work` nothing is
   * awaited: from there on the arbiter sees what is asked of the slot.
   */
  async admitted<T> (name: string, signal: AbortSignal, work: (owner: SlotOwner) => Promise<T>): Promise<T> {
    const { fleet, gate } = this.#deps
    fleet.owner(name)
    for (let wait = gate.admit(name, signal); wait !== null; wait = gate.admit(name, signal)) await wait
    return await this.#told(name, work(fleet.owner(name)))
  }

  /** Those waiting for a slot that had to make room for images are told so. */
  async #told<T> (name: string, work: Promise<T>): Promise<T> {
    try {
      return await work
    } catch (error) {
      if (isSvcError(error) && error.code === 'slot.stopped') this.#deps.gate.assertAllows(name)
      throw error
    }
  }
}

/** The slot has one engine by now, whose line goes on. */
function hasMoved (error: unknown): boolean {
  return isSvcError(error) && error.details.reason === MOVED
}
