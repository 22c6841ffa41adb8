import { svcError, type ConfigService } from '../../contract/index.js'
import { mostReplicas, replicaPlace } from '../schedule/replica-names.js'
import { ReplicaSet, type ReplicaSetDeps } from './replica-set.js'

export interface ReplicaSetsDeps extends Omit<ReplicaSetDeps, 'queueBound'> {
  /** As it is written: a slot is one slot. */
  readonly config: Pick<ConfigService, 'snapshot'>
}

/** Why those are refused who waited in a set that has ended: the slot goes on without it. */
export const MOVED = 'moved'

/** The sets of all slots that may have several engines. */
export class ReplicaSets {
  readonly #deps: ReplicaSetsDeps
  readonly #sets = new Map<string, ReplicaSet>()
  #isOpen = false

  constructor (deps: ReplicaSetsDeps) {
    this.#deps = deps
  }

  /** Null for a slot that has one engine at most. */
  find (name: string): ReplicaSet | null {
    return this.#sets.size === 0 ? null : this.#sets.get(name) ?? null
  }

  /** Of a name in the fleet. */
  ofMember (name: string): ReplicaSet | null {
    return this.#sets.size === 0 ? null : this.find(replicaPlace(name).slot)
  }

  /** From now on there are sets: the fleet knows its slots. */
  open (): void {
    this.#isOpen = true
    this.follow()
  }

  /** The configuration, once the fleet has followed it. */
  follow (): void {
    if (!this.#isOpen) return
    const { slots } = this.#deps.config.snapshot
    for (const [name, set] of this.#sets) {
      const slot = slots.get(name)
      if (slot !== undefined && mostReplicas(slot) > 1) continue
      this.#sets.delete(name)
      const details = { slot: name, reason: MOVED, retry_after_s: 1 }
      set.end(svcError('slot.stopped', `slot '${name}' was changed while the request waited`, { details }))
    }
    for (const slot of slots.values()) {
      if (mostReplicas(slot) === 1) continue
      const known = this.#sets.get(slot.name)
      if (known !== undefined) known.follow(slot)
      else this.#sets.set(slot.name, new ReplicaSet(slot, { ...this.#deps, queueBound: () => this.#queueBound() }))
    }
  }

  #queueBound (): number { return this.#deps.config.snapshot.svc.dispatcher.queue_per_slot }

  /** Nothing more is started or stopped; those who wait are refused. */
  close (): void {
    this.#isOpen = false
    for (const set of this.#sets.values()) set.end(svcError('gateway.stopping', 'the gateway is shutting down'))
    this.#sets.clear()
  }
}
