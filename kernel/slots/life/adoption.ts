import { messageOf } from '../../contract/index.js'
import { LABEL_DAEMON, LABEL_INSTANCE, LABEL_SLOT, type EngineInspection } from '../../contract/provider/engine-runtime.js'
import { slotFile } from '../../config/parts/config-parts.js'
import { labelledPorts } from '../plan/launch/engine-ports.js'
import type { FleetDeps } from './fleet-deps.js'
import type { Member } from './fleet-member.js'
import { unreadFile, type HeldEngines } from './held-engines.js'
import type { FormerPorts, SlotPorts } from './ports.js'
import { byAge, generationOf, reconcileEngines, unfit, type ReconcilePlan } from './reconcile.js'

export interface AdoptionDeps extends Pick<FleetDeps, 'config' | 'models' | 'plans' | 'runtime' | 'instance' | 'stateFiles' | 'log'> {
  readonly members: ReadonlyMap<string, Member>
  readonly held: HeldEngines
  readonly ports: Pick<SlotPorts, 'remember' | 'forget'>
}

/** Engines that an earlier gateway left running: each goes to its slot, is held, or is removed. */
export class Adoption {
  readonly #deps: AdoptionDeps

  constructor (deps: AdoptionDeps) {
    this.#deps = deps
  }

  /** At the start, when the slots have joined. */
  async start (): Promise<void> {
    const { held, runtime, instance, stateFiles } = this.#deps
    const plan = this.#planOf(withoutDaemons(await runtime.list({ [LABEL_INSTANCE]: instance })))
    await Promise.all(plan.remove.map(({ engine, reason }) => this.#remove(engine, reason)))
    for (const { slot, engine } of plan.adopt) void this.#adopt(slot, engine)
    await Promise.all(plan.hold.map(async ({ slot, engine }) => {
      held.hold(slot, { engine, state: await stateFiles.read(slot), file: this.#unreadFile(slot) ?? slotFile(slot) })
    }))
    this.settleHeld()
  }

  /**
   * Engines of a driver that was away at the start. A slot that launches at this moment takes its own over in place of
   * starting another; one that has an engine by now keeps that one. All is decided before the driver is used.
   */
  late (found: readonly EngineInspection[]): void {
    const { held, members } = this.#deps
    const free = withoutDaemons(found).filter(engine => {
      const member = members.get(engine.labels[LABEL_SLOT] ?? '')
      const { op = null, engine: own = null } = member?.owner.core ?? {}
      if (op === 'launch') this.#offer(member!, engine)
      else if (op !== null || own !== null) void this.#remove(engine, 'its slot has another engine')
      return op === null && own === null
    })
    const plan = this.#planOf(free)
    for (const { slot, engine } of plan.adopt) void this.#adopt(slot, engine)
    for (const { slot, engine } of plan.hold) {
      held.hold(slot, { engine, state: null, file: this.#unreadFile(slot) ?? slotFile(slot) })
    }
    for (const { engine, reason } of plan.remove) void this.#remove(engine, reason)
  }

  /** Engines whose slots are known by now: nothing is awaited between the slot's arrival and its engine's adoption. */
  settleHeld (): void {
    const { held: all, members, ports, log } = this.#deps
    for (const name of all.names()) {
      // asking may read the registry anew, which leads here too
      const held = this.#unreadFile(name) === null ? all.take(name) : null
      if (held === null) continue
      const { engine, state } = held
      // a request that was refused meanwhile may have chosen another port
      ports.forget(name)
      this.#recall(engine.labels, { port: null, ...engine.address, ...state?.port == null ? {} : { port: state.port } })
      const member = members.get(name)
      const reason = unfit(engine, member?.engine.wantedHash(true), false)
      const gone = reason === null ? this.#adopt(name, engine) : this.#remove(engine, reason)
      if (member !== undefined) member.engine.free = gone
      gone.catch((error: unknown) => log.error({ slot: name, error: messageOf(error) }, 'an engine of an earlier run could not be taken over'))
    }
  }

  /** What does not fit, or comes too late, is removed by the launch before it makes another. */
  #offer ({ engine: slot }: Member, engine: EngineInspection): void {
    if (unfit(engine, slot.wantedHash(true), false) !== null) return
    this.#recall(engine.labels, engine.address)
    slot.offer(engine)
  }

  /** The ports that they had are their slots' again. */
  #planOf (found: readonly EngineInspection[]): ReconcilePlan {
    for (const { labels, address } of byAge(found)) this.#recall(labels, address)
    const wanted = new Map([...this.#deps.members].map(([name, { engine }]) => [name, engine.wantedHash(true)]))
    return reconcileEngines(found, wanted, name => this.#unreadFile(name) !== null)
  }

  #unreadFile (name: string): string | null {
    const { config, models, plans } = this.#deps
    return unreadFile(config.snapshot, models, name, () => plans.swaps.of(name)?.model ?? plans.slot(name).model.default)
  }

  async #adopt (slot: string, engine: EngineInspection): Promise<void> {
    const member = this.#deps.members.get(slot)
    if (member !== undefined) member.engine.found = engine
    member?.owner.adopt(generationOf(engine))
  }

  /** @param otherwise of an engine that does not say itself what it was started with */
  #recall (labels: EngineInspection['labels'], otherwise: FormerPorts | null): void {
    const { members, ports } = this.#deps
    const name = labels[LABEL_SLOT] ?? ''
    const told = labelledPorts(labels)
    // what is recorded may be a launch behind
    if (told !== null) ports.forget(name)
    const had = told ?? otherwise
    if (members.has(name) && had !== null) ports.remember(name, had)
  }

  /** One that resists goes to its slot, which removes it before it starts another. */
  async #remove (engine: EngineInspection, reason: string): Promise<void> {
    const { runtime, log, members } = this.#deps
    const { id, name, label } = engine
    log.info({ engine: id, name, reason }, 'removing an engine of an earlier run')
    try {
      await runtime.remove(id)
    } catch (error) {
      const message = `an engine of an earlier run could not be removed: ${messageOf(error)}`
      log.error({ engine: id, error: messageOf(error) }, 'an engine of an earlier run could not be removed')
      const address = engine.address ?? { host: '', port: 0 }
      members.get(engine.labels[LABEL_SLOT] ?? '')?.owner.inherit({ id, address, label, configHash: '', adopted: true, workers: null }, message)
    }
  }
}

/** Programs that serve no slot have their own owner. */
function withoutDaemons (found: readonly EngineInspection[]): EngineInspection[] {
  return found.filter(({ labels }) => labels[LABEL_DAEMON] === undefined)
}
