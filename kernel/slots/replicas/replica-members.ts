import { isSvcError, type Clock, type NamedSlotConfig, type SlotGate, type SlotLease, type SlotStatus } from '../../contract/index.js'
import type { MemberListener } from '../life/fleet-member.js'
import type { SlotFleet } from '../life/slot-fleet.js'
import type { SlotOwner } from '../life/slot-owner.js'
import { canLend, canServe, usedAt } from '../schedule/leases.js'
import { mostReplicas, replicaName } from '../schedule/replica-names.js'
import type { ScheduledSlot, Wants } from '../schedule/scheduled-slot.js'
import { chooseReplica, type FreeReplica } from './choose-replica.js'
import { prefixKeys, PrefixPlaces, type PrefixSource } from './prefix-places.js'
import type { Replica, ReplicaStage } from './replica-plan.js'

export interface ReplicaMembersDeps {
  readonly fleet: Pick<SlotFleet, 'core' | 'owner' | 'status' | 'listen' | 'idleTimeoutMs' | 'held'>
  readonly gate: Pick<SlotGate, 'admit' | 'lends' | 'released'>
  readonly clock: Clock
}

export interface ReplicaMember {
  readonly index: number
  /** In the fleet. */
  readonly name: string
}

/** Of one whose failure does not heal by itself: when it is looked at again without being asked for. */
const LOOK_AGAIN_MS = 60_000

/** The replicas of a slot in the fleet: what each of them is at the moment, and leases of the one that suits. */
export class ReplicaMembers {
  readonly #deps: ReplicaMembersDeps
  readonly #places = new PrefixPlaces()
  /** They get no further request. */
  readonly retiring = new Set<number>()
  /** They were told to come up, and perhaps wait for their device. */
  readonly #starting = new Set<number>()
  /** When the last start failed. */
  readonly #failedAt = new Map<number, number>()
  #all: readonly ReplicaMember[] = []
  #hasAffinity = true
  #deaf: ReadonlyArray<() => void> = []

  constructor (deps: ReplicaMembersDeps) {
    this.#deps = deps
  }

  get all (): readonly ReplicaMember[] { return this.#all }

  /** @param changed told in the middle of a member's change: it must not call an owner */
  follow (slot: NamedSlotConfig, changed: MemberListener): void {
    this.unfollow()
    this.#failedAt.clear()
    this.#hasAffinity = slot.prefix_affinity
    this.#all = Array.from({ length: mostReplicas(slot) }, (_, i) => ({ index: i + 1, name: replicaName(slot.name, i + 1) }))
    for (const index of this.retiring) if (index > this.#all.length) this.retiring.delete(index)
    this.#deaf = this.#all.map(({ index, name }) => this.#deps.fleet.listen(name, (core, before) => {
      if (core.engine === null && before.engine !== null) this.#forget(index)
      changed(core, before)
    }))
  }

  unfollow (): void {
    for (const unlisten of this.#deaf) unlisten()
  }

  at (index: number): ReplicaMember | undefined { return this.#all[index - 1] }

  statuses (): readonly SlotStatus[] {
    const { fleet } = this.#deps
    return this.#all.flatMap(({ name }) => fleet.core(name) === null ? [] : fleet.status(name))
  }

  states (): readonly Replica[] {
    return this.#all.flatMap(({ index, name }) => {
      const core = this.#deps.fleet.core(name)
      return core === null ? [] : this.#stateOf(index, core)
    })
  }

  /** Those that run, or are about to. */
  live (): readonly ReplicaMember[] {
    return this.states().flatMap(({ index, stage }) => stage === 'up' || stage === 'retiring' || stage === 'coming' ? this.at(index)! : [])
  }

  isFree (wants: Wants): boolean { return this.#free(wants).length > 0 }

  /** A lease of a replica that is free at this moment, else null. */
  lend (light: boolean, source: PrefixSource | null): SlotLease | null {
    const free = this.#free(light ? 'lease' : 'worker')
    if (free.length === 0) return null
    const keys = light || source === null || !this.#hasAffinity ? [] : prefixKeys(source)
    const { index, name } = chooseReplica(free, this.#places.find(keys))!
    this.#places.note(keys, index)
    return this.#deps.fleet.owner(name).tryAcquire(light)
  }

  /** Resolves when it is up. Rejects as its owner does, and when it may not have its device. */
  async bringUp (member: ReplicaMember, signal: AbortSignal): Promise<void> {
    const { index } = member
    this.#starting.add(index)
    try {
      await this.admitted(member, signal, owner => owner.ensureReady(signal))
      this.#failedAt.delete(index)
    } catch (error) {
      if (!signal.aborted && !wasStopped(error)) this.#failedAt.set(index, this.#deps.clock.monotonic())
      throw error
    } finally {
      this.#starting.delete(index)
    }
  }

  /** Starts the first so many. Resolves with why some did not come up; rejects when none did. */
  async load (count: number, signal: AbortSignal): Promise<readonly unknown[]> {
    const loads = this.#all.slice(0, count).map(member => this.admitted(member, signal, owner => owner.load(signal)))
    const ends = await Promise.allSettled(loads)
    const reasons = ends.flatMap(end => end.status === 'rejected' ? [end.reason as unknown] : [])
    if (reasons.length === ends.length) throw reasons[0]
    return reasons
  }

  /**
   * One after the other, so that the others answer meanwhile.
   * @param isMeant asked of each that runs, when it is its turn
   */
  async restart (signal: AbortSignal, isMeant: (member: ReplicaMember) => boolean = () => true): Promise<void> {
    for (const { index } of this.live()) {
      // there may be fewer by now
      const member = this.at(index)
      if (member !== undefined && isMeant(member)) await this.admitted(member, signal, owner => owner.restart(false, signal))
    }
  }

  /** Resolves when their engines are gone. */
  async unload (force: boolean): Promise<void> {
    const { fleet, gate } = this.#deps
    const gone = await Promise.allSettled(this.#all.map(async ({ name }) => {
      await fleet.owner(name).unload(force)
      await fleet.held.stop(name)
      gate.released(name)
    }))
    for (const end of gone) if (end.status === 'rejected') throw end.reason
  }

  /** What failed for good may be tried again when it is needed. */
  forgive (): void {
    this.#failedAt.clear()
    for (const { name } of this.#all) if (this.#deps.fleet.core(name) !== null) this.#deps.fleet.owner(name).surroundingsChanged()
  }

  /** As `SlotManager` does it for slots: between the last answer and `work` nothing is awaited. */
  async admitted<T> ({ name }: ReplicaMember, signal: AbortSignal, work: (owner: SlotOwner) => Promise<T>): Promise<T> {
    const { fleet, gate } = this.#deps
    for (let wait = gate.admit(name, signal); wait !== null; wait = gate.admit(name, signal)) await wait
    return await work(fleet.owner(name))
  }

  /** Its engine is gone: the next one has cached nothing, and takes requests. */
  #forget (index: number): void {
    this.#places.forget(index)
    this.retiring.delete(index)
  }

  #free (wants: Wants): Array<ReplicaMember & FreeReplica> {
    const { fleet, gate } = this.#deps
    return this.#all.flatMap(member => {
      const core = fleet.core(member.name)
      const isFree = core !== null && canLend(core, wants) && !this.retiring.has(member.index) && gate.lends(member.name)
      return isFree ? [{ ...member, inFlight: core.inFlight }] : []
    })
  }

  #stateOf (index: number, core: ScheduledSlot): Replica {
    const [stage, retryAt] = [this.#stage(index, core), this.#retryAt(index, core)]
    return { index, stage, retryAt, inFlight: core.inFlight, workers: core.engine?.workers ?? null, usedAt: usedAt(core) }
  }

  #stage (index: number, core: ScheduledSlot): ReplicaStage {
    if (canServe(core)) return this.retiring.has(index) ? 'retiring' : 'up'
    if (core.wanted || (core.op === 'launch' && !core.aborting) || this.#starting.has(index)) return 'coming'
    if (core.state === 'error' || (core.state === 'offline' && this.#failedAt.has(index))) return 'failed'
    return core.state === 'offline' ? 'down' : 'leaving'
  }

  #retryAt (index: number, { state, failure, since }: ScheduledSlot): number {
    if (state === 'error' && failure?.kind === 'heals') return failure.retryAt
    return Math.max(since, this.#failedAt.get(index) ?? -Infinity) + LOOK_AGAIN_MS
  }
}

/** Told to stop while it came up, which says nothing about the next try. */
function wasStopped (error: unknown): boolean {
  return isGone(error) || (isSvcError(error) && error.code === 'slot.stopped')
}

/** It is no member any more. */
export function isGone (error: unknown): boolean {
  return isSvcError(error) && error.code === 'gateway.stopping'
}
