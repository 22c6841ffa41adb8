import {
  messageOf, svcError, type EventBus, type Logger, type NamedSlotConfig, type SlotLease, type SlotStatus, type SvcError,
  type Timer
} from '../../contract/index.js'
import type { SnapshotFeed } from '../../async/snapshot-feed.js'
import { mostReplicas } from '../schedule/replica-names.js'
import type { ScheduledSlot } from '../schedule/scheduled-slot.js'
import { refusalError } from '../schedule/slot-errors.js'
import { isServing } from '../schedule/slot-machine.js'
import { queueFull } from '../schedule/slot-refusals.js'
import { DemandPeak } from './demand-peak.js'
import type { PrefixSource } from './prefix-places.js'
import { ReplicaLine } from './replica-line.js'
import { isGone, ReplicaMembers, type ReplicaMember, type ReplicaMembersDeps } from './replica-members.js'
import { ReplicaNews } from './replica-news.js'
import { planReplicas, termsOf, type ReplicaAction, type ReplicaPlan } from './replica-plan.js'
import { statusOfReplicas } from './replica-status.js'

export interface ReplicaSetDeps extends ReplicaMembersDeps {
  readonly events: EventBus
  readonly log: Logger
  /** How many may wait for a lease. */
  readonly queueBound: () => number
}

/** A request that asks for a lease. */
export interface ReplicaTurn {
  /** Needs no worker. */
  readonly light: boolean
  /** Of the low class. */
  readonly low: boolean
  /** What it asks, for the replica that has its beginning cached. */
  readonly source: PrefixSource | null
}

/**
 * The engines of a slot that may have several: one line for all of them, whose first goes to the replica that is free
 * next; and how many there are, as `planReplicas` has it. Each of them is a member of the fleet, with an owner that does
 * what owners do. Everything it starts ends in `end`.
 */
export class ReplicaSet {
  readonly name: string
  readonly feed: SnapshotFeed<SlotStatus>
  readonly #deps: ReplicaSetDeps
  readonly #members: ReplicaMembers
  readonly #line: ReplicaLine
  readonly #news: ReplicaNews
  readonly #peak = new DemandPeak()
  #slot: NamedSlotConfig
  /** Something has asked for the slot since it was unloaded. */
  #awake = false
  /** Ends what was begun for the slot's sake when it is unloaded. */
  #round = new AbortController()
  #ended: SvcError | null = null
  #timer: Timer | null = null
  #isToLook = false
  /** Replicas that an earlier gateway left. */
  #found = 0
  /** Requests at work. */
  #inFlight = 0
  /** Those and the ones in line that another replica may be started for, when they were counted last. */
  #demand = 0

  constructor (slot: NamedSlotConfig, deps: ReplicaSetDeps) {
    this.name = slot.name
    this.#slot = slot
    this.#deps = deps
    this.#news = new ReplicaNews(slot.name, deps)
    this.feed = this.#news.feed
    this.#members = new ReplicaMembers(deps)
    this.#line = new ReplicaLine(deps.clock, () => { this.#lookSoon() })
    this.follow(slot)
  }

  /** Its configuration, which the fleet has followed already. */
  follow (slot: NamedSlotConfig): void {
    this.#slot = slot
    this.#members.follow(slot, (core, before) => { this.#changed(core, before) })
    if (!slot.enabled) this.#sleep('disabled')
    this.#lookSoon()
  }

  status (): SlotStatus {
    return statusOfReplicas(this.name, this.#members.statuses(), this.#line.all)
  }

  /** Names in the fleet. */
  memberNames (): readonly string[] { return this.#members.all.map(({ name }) => name) }

  /** Whether as many have to stay as are up: none of them goes for a lack of memory. */
  isScarce (): boolean {
    return this.#members.states().filter(({ stage }) => stage === 'up').length <= this.#slot.min_replicas
  }

  /** A lease of a replica that is free at this moment; null when none is, or when others wait. */
  tryAcquire (light: boolean, source: PrefixSource | null): SlotLease | null {
    if (this.#ended !== null || (!light && this.#line.workers > 0)) return null
    return this.#members.lend(light, source)
  }

  async acquire (signal: AbortSignal, { light, low, source }: ReplicaTurn): Promise<SlotLease> {
    signal.throwIfAborted()
    this.#mustBeOpen()
    const lease = this.tryAcquire(light, source)
    if (lease !== null) return lease
    const { leases } = this.#line
    if (leases >= this.#deps.queueBound()) throw refusalError(this.name, queueFull({ waitingWorkers: leases, waitingLeases: 0 }))
    const granted = this.#line.wait(light ? 'lease' : 'worker', low, signal, () => this.#members.lend(light, source)!)
    this.#wake()
    return await granted
  }

  async ensureReady (signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    this.#mustBeOpen()
    if (this.#members.isFree('ready')) return
    const granted = this.#line.wait('ready', false, signal, () => {})
    this.#wake()
    await granted
  }

  /** Starts as many as the slot has normally; rejects when none came up. Failures before count no more. */
  async load (signal: AbortSignal): Promise<void> {
    this.#mustBeOpen()
    this.#awake = true
    this.#members.forgive()
    const failed = await this.#members.load(Math.max(this.#slot.replicas, this.#slot.min_replicas), signal)
    for (const reason of failed) this.#deps.log.warn({ slot: this.name, error: messageOf(reason) }, 'a replica did not start')
  }

  /** One after the other, so that the others answer meanwhile. */
  async restart (signal: AbortSignal): Promise<void> {
    this.#mustBeOpen()
    this.#awake = true
    if (this.#members.live().length === 0) return await this.load(signal)
    await this.#members.restart(signal)
  }

  /** As `load`, but those that run with another model start anew, one after the other. */
  async returnTo (modelId: string | null, signal: AbortSignal): Promise<void> {
    const { fleet } = this.#deps
    await this.#members.restart(signal, ({ name }) => fleet.core(name) !== null && fleet.status(name).modelId !== modelId)
    await this.load(signal)
  }

  /** Resolves when the engines are gone. */
  async unload (force: boolean): Promise<void> {
    this.#sleep('unloaded')
    await this.#members.unload(force)
  }

  /** Refuses those who wait, unless a replica is left that serves. */
  turnAway (): void {
    const { fleet, gate } = this.#deps
    if (this.memberNames().every(name => !gate.lends(name) || !isServing(fleet.core(name)?.state ?? 'offline'))) this.#refuse('unloaded')
  }

  /** Those who wait hear `error`; the engines go on. */
  end (error: SvcError): void {
    this.#ended = error
    this.#round.abort(error)
    this.#timer?.cancel()
    this.#members.unfollow()
    this.#line.refuse(() => error)
    this.feed.close()
  }

  #mustBeOpen (): void {
    if (this.#ended !== null) throw this.#ended
  }

  #wake (): void {
    this.#awake = true
    this.#look()
  }

  #sleep (why: 'unloaded' | 'disabled'): void {
    this.#awake = false
    this.#members.retiring.clear()
    this.#refuse(why)
    this.#round.abort()
    this.#round = new AbortController()
  }

  #refuse (why: 'unloaded' | 'disabled'): void {
    this.#line.refuse(() => svcError('slot.stopped', `slot '${this.name}' was ${why} while the request waited`,
      { details: { slot: this.name, reason: why, retry_after_s: 1 } }))
  }

  /** In the middle of a member's change: what follows from it waits until that is over. */
  #changed (core: ScheduledSlot, before: ScheduledSlot): void {
    if (core.engine !== before.engine && core.engine?.adopted === true) this.#foundOne()
    this.#count(this.#inFlight + core.inFlight - before.inFlight)
    const isSame = core.state === before.state && core.op === before.op && core.engine === before.engine
    const isCount = isSame && core.suspect === before.suspect
    const isAwaited = this.#line.all > 0 || this.#members.retiring.size > 0 || this.feed.size > 0
    if (!isCount || isAwaited) this.#lookSoon()
  }

  /** An earlier gateway needed what it left, as far as this one can know: it stays for as long as any that is needed no more. */
  #foundOne (): void {
    this.#found = Math.min(this.#found + 1, mostReplicas(this.#slot))
    this.#peak.note(this.#found * this.#slot.workers, this.#deps.clock.monotonic(), this.#windowMs)
  }

  #count (inFlight: number): void {
    const demand = inFlight + this.#line.pressing
    this.#inFlight = inFlight
    this.#peak.note(Math.max(this.#demand, demand), this.#deps.clock.monotonic(), this.#windowMs)
    this.#demand = demand
  }

  get #windowMs (): number { return this.#slot.scale_down_wait_s * 1000 }

  #lookSoon (): void {
    if (this.#isToLook) return
    this.#isToLook = true
    queueMicrotask(() => {
      this.#isToLook = false
      this.#look()
    })
  }

  #look (): void {
    // one that was deleted is about to end
    if (this.#ended !== null || this.#deps.fleet.core(this.name) === null) return
    this.#letIn()
    const { clock } = this.#deps
    const { actions, lookAt } = this.#plan()
    for (const action of actions) this.#act(action)
    if (actions.some(({ type }) => type === 'keep')) this.#letIn()
    this.#timer?.cancel()
    this.#timer = lookAt === null ? null : clock.setTimer(Math.max(1, lookAt - clock.monotonic()), () => { this.#look() })
    this.#news.tell(this.status())
  }

  #plan (): ReplicaPlan {
    const now = this.#deps.clock.monotonic()
    const replicas = this.#members.states()
    // also such as were adopted, or started for the GPU's sake
    if (this.#slot.enabled && replicas.some(({ stage }) => stage === 'up')) this.#awake = true
    const { all: waiting, pressing } = this.#line
    this.#count(replicas.reduce((sum, { inFlight }) => sum + inFlight, 0))
    return planReplicas(replicas, {
      waiting,
      pressing,
      oldestSince: waiting === 0 ? null : this.#line.pressingSince() ?? now,
      peak: this.#peak.most(this.#demand, now, this.#windowMs),
      peakFallsAt: this.#peak.fallsAt(this.#windowMs)
    }, termsOf(this.#slot, this.#deps.fleet.idleTimeoutMs(this.name), this.#awake), now)
  }

  /** Those who wait, as far as replicas are free for them. */
  #letIn (): void {
    while (this.#line.workers > 0 && this.#members.isFree('worker')) this.#line.letOneIn()
    if (this.#line.others > 0 && this.#members.isFree('lease')) this.#line.letOthersIn()
  }

  #act (action: ReplicaAction): void {
    const member = this.#members.at(action.index)!
    const { retiring } = this.#members
    switch (action.type) {
      case 'keep':
        retiring.delete(member.index)
        return
      case 'start':
        this.#news.scaled(member.index, 'started', this.#line.all === 0 ? 'held up' : `${this.#line.all} waiting`)
        void this.#bringUp(member)
        return
      case 'retire':
        retiring.add(member.index)
        return
      case 'stop':
        this.#news.scaled(member.index, 'stopped', action.why === 'idle' ? 'idle' : 'not needed')
        void this.#deps.fleet.owner(member.name).evict(`unloaded: ${action.why === 'idle' ? 'no request for a while' : 'not needed for a while'}`)
        retiring.delete(member.index)
    }
  }

  async #bringUp (member: ReplicaMember): Promise<void> {
    const { signal } = this.#round
    await this.#members.bringUp(member, signal).catch((error: unknown) => {
      // its own state tells; those who wait hear of it when nothing else comes up for them
      if (!signal.aborted && this.#members.live().length === 0 && !isGone(error)) this.#line.refuse(() => error as SvcError)
    })
    this.#look()
  }
}
