import { messageOf, svcError, type EngineProvider, type LaunchDifference } from '../../contract/index.js'
import type { Beat } from '../../async/beat.js'
import { abortable } from '../../async/waiting.js'
import { LABEL_CONFIG, type EngineInspection } from '../../contract/provider/engine-runtime.js'
import { openNamed } from '../../runtime/runtime-set.js'
import type { PlacedSlot } from '../gpu/gpu-groups.js'
import type { EnginePorts } from '../plan/launch/engine-ports.js'
import type { PreparedLaunch } from '../plan/launch/prepared-launch.js'
import { launchDifferences, renderedLaunch, type RenderedLaunch } from '../plan/launch/rendered-launch.js'
import { idleTimeoutMs, SOFT_IDLE_MS } from '../schedule/idle-policy.js'
import { mostReplicas } from '../schedule/replica-names.js'
import type { Engine } from '../schedule/scheduled-slot.js'
import type { FleetDeps } from './fleet-deps.js'
import { lookAgain } from './watch/health.js'
import { watchHealth, type EngineWork } from './watch/health-watch.js'
import type { HeldEngines } from './held-engines.js'
import type { Launcher } from './launcher.js'
import type { Report } from './launch-report.js'
import type { SlotPorts } from './ports.js'
import type { SlotActions } from './slot-actions.js'

export interface SlotEngineDeps extends Omit<FleetDeps, 'ports'> {
  readonly launcher: Launcher
  /** When running engines are looked at. */
  readonly beat: Beat
  readonly ports: SlotPorts
  readonly held: HeldEngines
  /** Engines of slots that have left, which could not be removed: they go before another of that name is started. */
  readonly stranded: Map<string, Engine>
}

/** What an engine was started with; stays when the plugin or the configuration changes. */
interface LaunchedAs {
  readonly provider: EngineProvider
  readonly modelId: string | null
  readonly placed: PlacedSlot
  readonly rendered: RenderedLaunch
}

/** The engine of one slot, as its owner has it started, watched and stopped, and what it was started with. */
export class SlotEngine implements SlotActions {
  readonly changed: SlotActions['changed']
  /** Settles when an earlier engine of this name has gone: it holds the port until then. */
  free: Promise<void>
  /** What an earlier gateway left running, for `adopt`. */
  found: EngineInspection | null = null
  readonly #name: string
  readonly #deps: SlotEngineDeps
  /** What an earlier gateway left running, of a driver that was opened for the launch that runs. */
  #offered: EngineInspection | null = null
  #launched: LaunchedAs | null = null
  #hasDrifted = false
  /** How long a client wants it kept, in milliseconds; null without a wish. */
  #keepMs: number | null = null

  constructor (name: string, deps: SlotEngineDeps, free: Promise<void>, changed: SlotActions['changed']) {
    this.#name = name
    this.#deps = deps
    this.free = free
    this.changed = changed
  }

  /** Null while there is no engine. */
  get launched (): LaunchedAs | null { return this.#launched }

  /** Whether it runs otherwise than it would be started now. */
  get hasDrifted (): boolean { return this.#hasDrifted }

  async launch (generation: number, signal: AbortSignal, report: Report): Promise<Engine> {
    const name = this.#name
    const { held, launcher, plans, ports, runtime, stranded } = this.#deps
    await abortable(this.free, signal)
    this.#offered = null
    await abortable(openNamed(runtime, () => plans.driver(plans.slot(name))), signal)
    held.assertNone(name)
    const stray = stranded.get(name)
    if (stray !== undefined) await runtime.remove(stray.id)
    stranded.delete(name)
    if (this.#offered !== null) {
      this.found = this.#offered
      return await this.adopt(generation, signal, report)
    }
    return await ports.launch(name, signal, given =>
      launcher.launch(name, inner => this.#prepare(given, generation, inner), signal, report))
  }

  /** For the launch that runs, unless it has looked already. */
  offer (engine: EngineInspection): void {
    this.#offered = engine
  }

  async #prepare (ports: EnginePorts, generation: number, signal: AbortSignal): Promise<PreparedLaunch> {
    const { plans, assertMayRun } = this.#deps
    const placed = this.#place()
    // a file system that is gone answers nothing, and cannot be told to stop
    const prepared = await abortable(plans.prepare(this.#name, ports, generation), signal)
    assertMayRun(this.#name)
    this.#launched = { provider: prepared.provider, modelId: prepared.modelId, placed, rendered: prepared.rendered }
    return prepared
  }

  async adopt (_generation: number, signal: AbortSignal, report: Report): Promise<Engine> {
    const name = this.#name
    const { launcher, plans, ports } = this.#deps
    const found = this.found!
    const provider = plans.provider(name)
    if (provider === null) throw svcError('slot.config_error', `no provider '${plans.slot(name).provider}'`)
    const modelId = plans.modelId(name)
    const plan = plans.plan(name, ports.latest(name))
    const { workers, headers } = plan
    // it is adopted because it would be started alike
    this.#launched = { provider, modelId, placed: this.#place(), rendered: renderedLaunch(plan) }
    const launched = { provider, modelId, configHash: found.labels[LABEL_CONFIG] ?? '', workers, headers }
    return await launcher.adopt(name, found, launched, signal, report)
  }

  async stop (engine: Engine, crashed: boolean): Promise<readonly string[]> {
    const { launcher, engineGone, watchRelease } = this.#deps
    const released = await watchRelease(this.#name)
    const tail = await launcher.stop(engine.id, crashed, this.#launched?.provider.health.path ?? null)
    engineGone(engine)
    await released()
    return tail
  }

  probe (engine: Engine, signal: AbortSignal): Promise<string | null> {
    const { clock, probe } = this.#deps
    return lookAgain(probe, engine.address, this.provider().health, clock, signal)
  }

  watch (engine: Engine, work: EngineWork, lost: (message: string) => void, signal: AbortSignal): void {
    const { beat, clock, config, probe } = this.#deps
    const { health: check } = this.provider()
    const unresponsiveMs = (): number => config.snapshot.svc.slots.unresponsive_s * 1000
    void watchHealth({ probe, address: engine.address, check, clock, beat, work, unresponsiveMs }, lost, signal)
  }

  provider (): EngineProvider { return this.#launched!.provider }

  modelId (): string | null { return this.#launched!.modelId }

  softIdleMs (): number { return SOFT_IDLE_MS }

  /** When replicas go is decided for all of a slot's. */
  idleTimeoutMs (): number | null {
    const slot = this.#deps.config.snapshot.slots.get(this.#name)
    return slot === undefined || mostReplicas(slot) > 1 ? null : this.idleMs()
  }

  /** How long it stays without requests, in milliseconds; null is for ever. */
  idleMs (): number | null {
    const { config: { snapshot }, plans } = this.#deps
    const slot = snapshot.slots.get(this.#name)
    if (slot === undefined) return null
    const facts = { slot, provider: plans.provider(this.#name), device: plans.device(slot) }
    return idleTimeoutMs(facts, snapshot.svc.slots.idle_timeout_s, this.#keepMs)
  }

  drainMs (): number { return this.#deps.config.snapshot.svc.slots.drain_timeout_s * 1000 }

  queueBound (): number { return this.#deps.config.snapshot.svc.dispatcher.queue_per_slot }

  /** Nothing runs any more, and nothing is being started. */
  forget (): void {
    this.#launched = null
    this.#keepMs = null
  }

  /** For the engine that runs, or is being started. */
  keep (ms: number): void {
    this.#keepMs = ms
  }

  /** A provider may have been replaced. An engine that the new one would start alike is its from now on, others keep theirs. */
  takeProvider (): void {
    const provider = this.#deps.plans.provider(this.#name)
    if (this.#launched !== null && provider !== null && !this.#hasDrifted) this.#launched = { ...this.#launched, provider }
  }

  /** @param engine that runs */
  checkDrift (engine: Engine | null): void {
    this.#hasDrifted = engine !== null && engine.configHash !== this.wantedHash()
  }

  /** How it runs otherwise than it would be started now; empty where it does not, and where it could not be started. */
  differences (): readonly LaunchDifference[] {
    const { plans, ports } = this.#deps
    if (!this.#hasDrifted || this.#launched === null || this.wantedHash() === null) return []
    return launchDifferences(this.#launched.rendered, renderedLaunch(plans.plan(this.#name, ports.latest(this.#name))))
  }

  /**
   * What an engine started now would be labelled with; null for a slot that cannot have one.
   * @param now it has to be allowed to run at this moment, too
   */
  wantedHash (now = false): string | null {
    const name = this.#name
    const { assertMayRun, config, log, plans, ports } = this.#deps
    const slot = config.snapshot.slots.get(name)
    if (slot === undefined || !slot.enabled) return null
    try {
      if (now) assertMayRun(name)
      return plans.plan(name, ports.latest(name)).configHash
    } catch (error) {
      // a slot that starts says it, and the check of the configuration does
      log.debug({ slot: name, error: messageOf(error) }, 'slot cannot be planned, or may not run')
      return null
    }
  }

  #place (): PlacedSlot {
    const { plans } = this.#deps
    const slot = plans.slot(this.#name)
    return { slot, device: plans.device(slot) }
  }
}
