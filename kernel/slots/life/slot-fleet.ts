import { messageOf, redactLine, type ConfigSnapshot, type LaunchDifference, type SlotStatus } from '../../contract/index.js'
import { WallTime } from '../../state/wall-time.js'
import { Adoption } from './adoption.js'
import type { FleetDeps } from './fleet-deps.js'
import { ExitHub } from './watch/exit-hub.js'
import { portNames, providersOf, type Member, type MemberListener } from './fleet-member.js'
import { isLive } from '../schedule/leases.js'
import { onLate } from '../../runtime/runtime-set.js'
import { LeavingSlots } from './leaving-slots.js'
import { Launcher, launchBudgets } from './launcher.js'
import { SlotPorts } from './ports.js'
import type { PlacedSlot } from '../gpu/gpu-groups.js'
import { WATCH_BEAT_MS } from './watch/health-watch.js'
import { HeldEngines } from './held-engines.js'
import type { Engine, ScheduledSlot } from '../schedule/scheduled-slot.js'
import { slotNotFound } from '../schedule/slot-errors.js'
import { isJournalled, SlotJournal, swapIn } from './kept/slot-journal.js'
import { isFurtherReplica, mostReplicas } from '../schedule/replica-names.js'
import { SlotEngine, type SlotEngineDeps } from './slot-engine.js'
import { SlotOwner } from './slot-owner.js'
import { slotStatus } from './slot-status.js'
import { withEngine } from '../shadows/shadows.js'
import type { SlotStateFile } from './kept/slot-state-file.js'
import { Beat } from '../../async/beat.js'
import { SnapshotFeed } from '../../async/snapshot-feed.js'

/** The owners of all slots: made and ended as configuration comes and goes, fed with what their engines do. */
export class SlotFleet {
  readonly #deps: FleetDeps
  readonly #members = new Map<string, Member>()
  readonly #leaving: LeavingSlots
  /** Engines of which a file that cannot be read keeps unknown what they should be. */
  readonly held: HeldEngines
  readonly #adoption: Adoption
  /** Ports of slots, also of those that do not run. */
  readonly ports: SlotPorts
  readonly #exits: ExitHub
  readonly #wall: WallTime
  readonly #engineDeps: SlotEngineDeps
  readonly #journal: SlotJournal
  readonly #listeners = new Map<string, MemberListener>()
  #unlisten: () => void = () => {}

  constructor (deps: FleetDeps) {
    this.#deps = deps
    this.#wall = new WallTime(deps.clock)
    this.#journal = new SlotJournal(deps)
    this.#leaving = new LeavingSlots(deps.stateFiles, name => this.#members.has(name))
    const names = portNames(deps.plans)
    this.ports = new SlotPorts({ ...deps.ports, config: deps.config, isLive: name => isLive(this.core(name)), names })
    this.#exits = new ExitHub(deps.runtime, deps.instance)
    this.held = new HeldEngines({ ...deps, exits: this.#exits, gone: deps.heldGone })
    this.#adoption = new Adoption({ ...deps, members: this.#members, held: this.held, ports: this.ports })
    const launcher = new Launcher({
      runtime: deps.runtime,
      exits: this.#exits,
      clock: deps.clock,
      events: deps.events,
      log: deps.log,
      probe: deps.probe,
      client: deps.client,
      slot: name => deps.plans.slot(name),
      cleanLine: line => redactLine(deps.config.withoutSecrets(line)),
      budgets: () => launchBudgets(deps.config.snapshot.svc)
    })
    const beat = new Beat(deps.clock, WATCH_BEAT_MS)
    this.#engineDeps = { ...deps, beat, launcher, ports: this.ports, held: this.held, stranded: this.#leaving.stranded }
  }

  owner (name: string): SlotOwner {
    return this.#member(name).owner
  }

  /** As `SlotService.keep`. */
  keep (name: string, ms: number): void {
    const { engine, owner } = this.#member(name)
    engine.keep(ms)
    owner.retime()
  }

  idleTimeoutMs (name: string): number | null {
    return this.#member(name).engine.idleMs()
  }

  /** Null when there is no such slot. */
  core (name: string): ScheduledSlot | null {
    return this.#members.get(name)?.owner.core ?? null
  }

  /** What a slot was when its engine was started; null when it has none. */
  launchedAs (name: string): PlacedSlot | null {
    return this.#members.get(name)?.engine.launched?.placed ?? null
  }

  /** Told of every change of a slot's core, in the middle of it: the listener must not call the owner. One for each name. */
  listen (name: string, listener: MemberListener): () => void {
    this.#listeners.set(name, listener)
    return () => { if (this.#listeners.get(name) === listener) this.#listeners.delete(name) }
  }

  feed (name: string): SnapshotFeed<SlotStatus> {
    return this.#member(name).feed
  }

  /** Makes an owner for every configured slot, then adopts or removes what an earlier gateway left running. */
  async start (): Promise<void> {
    const { config, stateFiles } = this.#deps
    const names = [...withEngine(config.snapshot.slots).keys()]
    const states = await Promise.all(names.map(name => stateFiles.read(name)))
    names.forEach((name, i) => { if (withEngine(config.snapshot.slots).has(name)) this.#join(name, states[i]!) })
    this.#unlisten = onLate(this.#deps.runtime, found => this.#adoption.late(found))
    await this.#adoption.start()
  }

  /** Follows a change of configuration: new slots get an owner, vanished ones are stopped, running ones keep running. */
  follow (next: ConfigSnapshot, previous: ConfigSnapshot): void {
    const [after, earlier] = [withEngine(next.slots), withEngine(previous.slots)]
    for (const name of earlier.keys()) {
      if (!after.has(name)) this.#background(name, this.#leave(name, false))
    }
    for (const [name, slot] of after) {
      const before = earlier.get(name)
      const member = this.#members.get(name)
      if (before === undefined) this.#join(name, this.held.stateOf(name))
      if (before === undefined || member === undefined) continue
      if (before.model.default !== slot.model.default && this.#deps.plans.swaps.of(name) !== null) {
        this.#deps.plans.swaps.drop(name)
        this.#note(member)
      }
      if (before.enabled && !slot.enabled) this.#background(name, member.owner.unload(false))
      member.owner.retime()
    }
    for (const { engine, owner } of this.#members.values()) engine.checkDrift(owner.core.engine)
    this.surroundingsChanged()
  }

  /** Names of the providers that engines which run were started with. */
  readonly busyProviders = (): ReadonlySet<string> => providersOf([...this.#members.values()], this.#deps.plans)

  /** Providers came, went or were replaced. */
  providersChanged (): void {
    for (const { engine, owner } of this.#members.values()) {
      engine.checkDrift(owner.core.engine)
      engine.takeProvider()
    }
    this.surroundingsChanged()
  }

  /** Files, models, hardware, images or plugins changed: what was not worth a try may be by now. */
  surroundingsChanged (): void {
    this.#adoption.settleHeld()
    for (const { owner } of this.#members.values()) owner.surroundingsChanged()
  }

  /** Stops a slot's engine and forgets the slot. */
  async drop (name: string, force: boolean): Promise<void> {
    await (this.#leaving.drop(name, force) ?? this.#leave(name, force))
  }

  /** Resolves when every slot that has left until now has let go of its engine, or has failed to. */
  async departed (): Promise<void> {
    await this.#leaving.gone()
  }

  status (name: string): SlotStatus {
    return this.#statusOf(this.#member(name))
  }

  /** Resolves when a kill of the gateway does not change which model is in force. */
  async record (name: string): Promise<void> {
    const member = this.#members.get(name)
    if (member === undefined) return
    this.#note(member)
    await this.#deps.stateFiles.written(name)
  }

  differences (name: string): readonly LaunchDifference[] {
    return this.#member(name).engine.differences()
  }

  #statusOf (member: Member): SlotStatus {
    const { name, engine: { launched, hasDrifted }, owner: { core } } = member
    const { config, plans } = this.#deps
    const slot = config.snapshot.slots.get(name)
    const configured = slot === undefined ? null : plans.modelId(name)
    return slotStatus(core, this.held.find(name), {
      name,
      modelId: launched === null ? configured : launched.modelId,
      port: this.ports.current(name),
      ports: this.ports.currentNamed(name),
      configDrift: hasDrifted
    }, this.#wall)
  }

  /** Ends every owner. Engines stay of those slots that `keepsEngine` says. */
  async close (keepsEngine: (name: string) => boolean): Promise<void> {
    this.#unlisten()
    await this.departed()
    await Promise.all([...this.#members].map(async ([name, member]) => {
      await member.owner.close(keepsEngine(name)).catch((error: unknown) => {
        this.#deps.log.error({ slot: name, error: messageOf(error) }, 'slot did not close cleanly')
      })
      member.unwatchExit()
      member.feed.close()
    }))
    await this.held.close(keepsEngine)
    this.#exits.close()
    await this.#deps.stateFiles.flush()
  }

  #join (name: string, state: SlotStateFile | null): void {
    if (this.#members.has(name)) return
    const { clock, plans } = this.#deps
    if (state !== null && !isFurtherReplica(name)) plans.swaps.put(name, swapIn(state, plans.slot(name).model.default))
    const free = this.#leaving.goneOf(name)
    const engine = new SlotEngine(name, this.#engineDeps, free, (core, before) => this.#changed(member, core, before))
    const owner = new SlotOwner(name, clock, engine, {
      generation: state?.generation ?? 0,
      lastUsedAt: state?.last_used_at == null ? null : this.#wall.back(state.last_used_at * 1000)
    })
    const member: Member = { name, owner, engine, feed: new SnapshotFeed(), unwatchExit: () => {} }
    this.#members.set(name, member)
    if (state !== null) this.ports.remember(name, state)
    this.#deps.changed(name)
  }

  /** The name is free at once; the engine goes as soon as it may. */
  #leave (name: string, force: boolean): Promise<void> {
    const member = this.#members.get(name)
    if (member === undefined) return Promise.resolve()
    this.#members.delete(name)
    if (!isFurtherReplica(name)) this.#deps.plans.swaps.drop(name)
    this.ports.forget(name)
    this.#deps.changed(name)
    return this.#leaving.take(member, force)
  }

  #changed (member: Member, core: ScheduledSlot, before: ScheduledSlot): void {
    if (core.engine === null && core.op !== 'launch') member.engine.forget()
    if (core.engine !== before.engine) {
      member.engine.checkDrift(core.engine)
      this.#watchExit(member, core.engine)
    }
    if (member.feed.size > 0) member.feed.publish(this.#statusOf(member))
    if (this.#listeners.size > 0) this.#listeners.get(member.name)?.(core, before)
    if (!isJournalled(core, before)) return
    const slot = this.#deps.config.snapshot.slots.get(member.name)
    this.#journal.announce(this.#statusOf(member), core, before, slot !== undefined && mostReplicas(slot) > 1)
    // the name of one that has left may be another's by now
    if (this.#members.get(member.name) !== member) return
    this.#note(member)
    this.#deps.changed(member.name)
  }

  #note (member: Member): void {
    const { config, plans } = this.#deps
    const model = config.snapshot.slots.get(member.name)?.model.default ?? null
    this.#journal.note(this.#statusOf(member), member.owner.core, { swap: plans.swaps.of(member.name), model })
  }

  /** From the moment the owner knows its engine; what ended before that was the launcher's to see, or is remembered. */
  #watchExit (member: Member, engine: Engine | null): void {
    member.unwatchExit()
    member.unwatchExit = engine === null
      ? () => {}
      : this.#exits.onExit(engine.id, exit => member.owner.exited(exit.id, exit.exitCode))
  }

  #background (name: string, work: Promise<void>): void {
    work.catch((error: unknown) => this.#deps.log.error({ slot: name, error: messageOf(error) }, 'slot could not be stopped'))
  }

  #member (name: string): Member {
    const member = this.#members.get(name)
    if (member === undefined) throw slotNotFound(name)
    return member
  }
}
