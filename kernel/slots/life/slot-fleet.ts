import { messageOf, redactLine, type ConfigSnapshot, type LaunchDifference, type SlotStatus } from '../../contract/index.js'
import { LABEL_DAEMON, LABEL_INSTANCE, LABEL_SLOT, type EngineInspection } from '../../contract/provider/engine-runtime.js'
import { WallTime } from '../../state/wall-time.js'
import type { FleetDeps } from './fleet-deps.js'
import { ExitHub } from './watch/exit-hub.js'
import { portNames, providersOf, type Member, type MemberListener } from './fleet-member.js'
import { isLive } from '../schedule/leases.js'
import { LeavingSlots } from './leaving-slots.js'
import { Launcher, launchBudgets } from './launcher.js'
import { SlotPorts, type FormerPorts } from './ports.js'
import { byAge, reconcileEngines, unfit } from './reconcile.js'
import { removeFound } from './remove-found.js'
import { labelledPorts } from '../plan/launch/engine-ports.js'
import type { PlacedSlot } from '../gpu/gpu-groups.js'
import { slotFile } from '../../config/parts/config-parts.js'
import { WATCH_BEAT_MS } from './watch/health-watch.js'
import { HeldEngines, unreadFile } from './held-engines.js'
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
  /** Ports of slots, also of those that do not run. */
  readonly ports: SlotPorts
  readonly #exits: ExitHub
  readonly #wall: WallTime
  readonly #engineDeps: SlotEngineDeps
  readonly #journal: SlotJournal
  readonly #listeners = new Map<string, MemberListener>()

  constructor (deps: FleetDeps) {
    this.#deps = deps
    this.#wall = new WallTime(deps.clock)
    this.#journal = new SlotJournal(deps)
    this.#leaving = new LeavingSlots(deps.stateFiles, name => this.#members.has(name))
    const names = portNames(deps.plans)
    this.ports = new SlotPorts({ ...deps.ports, config: deps.config, isLive: name => isLive(this.core(name)), names })
    this.#exits = new ExitHub(deps.runtime, deps.instance)
    this.held = new HeldEngines({ ...deps, exits: this.#exits, gone: deps.heldGone })
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
    const { config, runtime, instance, stateFiles } = this.#deps
    const names = [...withEngine(config.snapshot.slots).keys()]
    const states = await Promise.all(names.map(name => stateFiles.read(name)))
    names.forEach((name, i) => { if (withEngine(config.snapshot.slots).has(name)) this.#join(name, states[i]!) })
    const found = (await runtime.list({ [LABEL_INSTANCE]: instance })).filter(({ labels }) => labels[LABEL_DAEMON] === undefined)
    for (const { labels, address } of byAge(found)) this.#recall(labels, address)
    const wanted = new Map([...this.#members].map(([name, { engine }]) => [name, engine.wantedHash(true)]))
    const plan = reconcileEngines(found, wanted, name => this.#unreadFile(name) !== null)
    await Promise.all(plan.remove.map(({ engine, reason }) => this.#removeFound(engine, reason)))
    for (const { slot, engine } of plan.adopt) void this.#adopt(slot, engine)
    await Promise.all(plan.hold.map(async ({ slot, engine }) => {
      this.held.hold(slot, { engine, state: await stateFiles.read(slot), file: this.#unreadFile(slot) ?? slotFile(slot) })
    }))
    this.#settleHeld()
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
      if (before.model.default !== slot.model.default) this.#deps.plans.swaps.drop(name)
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
    this.#settleHeld()
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

  /** Engines whose slots are known by now: nothing is awaited between the slot's arrival and its engine's adoption. */
  #settleHeld (): void {
    for (const name of this.held.names()) {
      // asking may read the registry anew, which leads here too
      const held = this.#unreadFile(name) === null ? this.held.take(name) : null
      if (held === null) continue
      const { engine, state } = held
      // a request that was refused meanwhile may have chosen another port
      this.ports.forget(name)
      this.#recall(engine.labels, { port: null, ...engine.address, ...state?.port == null ? {} : { port: state.port } })
      const member = this.#members.get(name)
      const reason = unfit(engine, member?.engine.wantedHash(true), false)
      const gone = reason === null ? this.#adopt(name, engine) : this.#removeFound(engine, reason)
      if (member !== undefined) member.engine.free = gone
      this.#background(name, gone)
    }
  }

  #unreadFile (name: string): string | null {
    const { config, models, plans } = this.#deps
    return unreadFile(config.snapshot, models, name, () => plans.swaps.of(name)?.model ?? plans.slot(name).model.default)
  }

  async #adopt (slot: string, engine: EngineInspection): Promise<void> {
    const member = this.#members.get(slot)
    if (member !== undefined) member.engine.found = engine
    member?.owner.adopt()
  }

  #removeFound (engine: EngineInspection, reason: string): Promise<void> {
    return removeFound(this.#deps, engine, reason, slot => this.#members.get(slot)?.owner)
  }

  #join (name: string, state: SlotStateFile | null): void {
    if (this.#members.has(name)) return
    const { clock, plans } = this.#deps
    if (state !== null && !isFurtherReplica(name)) plans.swaps.put(name, swapIn(state))
    const free = this.#leaving.goneOf(name)
    const engine = new SlotEngine(name, this.#engineDeps, free, (core, before) => this.#changed(member, core, before))
    const owner = new SlotOwner(name, clock, engine, {
      generation: state?.generation ?? 0,
      lastUsedAt: state?.last_used_at == null ? null : this.#wall.back(state.last_used_at * 1000)
    })
    const member: Member = { name, owner, engine, feed: new SnapshotFeed(), unwatchExit: () => {} }
    this.#members.set(name, member)
    this.#remember(name, state)
    this.#deps.changed(name)
  }

  #remember (name: string, had: FormerPorts | null): void {
    if (this.#members.has(name) && had !== null) this.ports.remember(name, had)
  }

  /** @param otherwise of an engine that does not say itself what it was started with */
  #recall (labels: EngineInspection['labels'], otherwise: FormerPorts | null): void {
    const name = labels[LABEL_SLOT] ?? ''
    const told = labelledPorts(labels)
    // what is recorded may be a launch behind
    if (told !== null) this.ports.forget(name)
    this.#remember(name, told ?? otherwise)
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
    const status = this.#statusOf(member)
    const slot = this.#deps.config.snapshot.slots.get(member.name)
    this.#journal.announce(status, core, before, slot !== undefined && mostReplicas(slot) > 1)
    // the name of one that has left may be another's by now
    if (this.#members.get(member.name) !== member) return
    this.#journal.note(status, core, this.#deps.plans.swaps.of(member.name))
    this.#deps.changed(member.name)
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
