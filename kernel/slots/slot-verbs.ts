import { svcError, type Convergence, type NamedSlotConfig, type SlotGate, type SlotService } from '../contract/index.js'
import type { FleetDeps } from './life/fleet-deps.js'
import type { ImagePulls } from './life/image-pulls.js'
import { swapModel } from './life/model-swap.js'
import type { SlotFleet } from './life/slot-fleet.js'
import { noModel, waitsForModel } from './plan/slot-models.js'
import type { ReplicaSets } from './replicas/replica-sets.js'
import { isServing } from './schedule/slot-machine.js'
import { notItsOwn, type ShadowSlots } from './shadow-slots.js'
import type { SlotLending } from './slot-lending.js'
import type { SlotWriter } from './write/slot-writer.js'

export interface SlotVerbsDeps extends Pick<FleetDeps, 'config' | 'plans'> {
  readonly fleet: SlotFleet
  readonly shadows: ShadowSlots
  readonly sets: ReplicaSets
  readonly gate: SlotGate
  readonly writer: SlotWriter
  readonly pulls: ImagePulls
  readonly lending: SlotLending
  /** The slots as they are. */
  readonly slots: Pick<SlotService, 'config' | 'device' | 'status' | 'unread'>
}

type Verbs = Pick<SlotService, 'load' | 'unload' | 'restart' | 'swap' | 'converge' | 'update' | 'delete'>

const never = new AbortController().signal

/** What operators tell slots to do (contract `SlotService`). It goes to the slot's engine, or to all of its replicas. */
export class SlotVerbs implements Verbs {
  readonly #deps: SlotVerbsDeps

  constructor (deps: SlotVerbsDeps) {
    this.#deps = deps
  }

  /** Another model than the configured one is loaded, and written down once it serves. */
  async load (name: string, { model, signal = never }: { model?: string, signal?: AbortSignal } = {}): Promise<void> {
    const { lending, slots, writer } = this.#deps
    const slot = slots.config(name)
    if (slot.served_by !== null && model === undefined) return await lending.ensureReady(name, signal)
    if (!slot.enabled && model === undefined && waitsForModel(slot)) throw noModel(slot)
    if (!slot.enabled) throw svcError('slot.config_error', `slot '${name}' is disabled; enable it with \`svc slot edit ${name} --enable\``)
    if (model === undefined || model === slots.status(name).modelId) return await this.#loadOwn(name, signal)
    await this.swap(name, model, { signal })
    await writer.update(name, { model: { default: model } })
  }

  async unload (name: string, { force = false }: { force?: boolean } = {}): Promise<void> {
    const { fleet, gate, sets } = this.#deps
    if (this.#mustHaveEngine(name, 'unloaded').pinned && !force) throw pinned(name)
    const set = sets.find(name)
    if (set !== null) return await set.unload(force)
    await fleet.owner(name).unload(force)
    await fleet.held.stop(name)
    gate.released(name)
  }

  async restart (name: string, { signal = never }: { signal?: AbortSignal } = {}): Promise<void> {
    this.#mustHaveEngine(name, 'restarted')
    await this.#restartOwn(name, signal)
  }

  /** Puts another model in force without writing it down; the slot keeps it until it is restarted with another. */
  async swap (name: string, model: string, { signal = never }: { signal?: AbortSignal } = {}): Promise<void> {
    const slot = this.#mustHaveEngine(name, 'given another model')
    const { config, fleet, plans, pulls, sets, slots, writer } = this.#deps
    const problem = plans.modelProblem(slot, model)
    if (problem !== null) throw svcError('model.not_found', problem, { param: 'model', details: { model_id: model, slot: name } })
    await swapModel({
      plans,
      trialPlans: () => plans.over(config.snapshot),
      profileFor: (of, wanted) => writer.preferredProfile(of, slots.device(name), wanted),
      contextFor: (of, wanted) => writer.contextOfFile(of, wanted),
      refusals: (of, wanted, profile) => writer.refusals(of, wanted, profile),
      status: of => slots.status(of),
      record: of => fleet.record(of),
      imageOf: (trial, of) => trial.image(of),
      fetchImage: (of, image, inner) => pulls.fetch(of, image, inner),
      restart: of => this.#restartOwn(of, never),
      load: of => sets.find(of)?.returnTo(plans.modelId(of), never) ?? this.#loadOwn(of, never),
      unload: of => sets.find(of)?.unload(false) ?? fleet.owner(of).unload(false)
    }, name, model, signal)
  }

  async converge (name: string, { signal = never }: { signal?: AbortSignal } = {}): Promise<Convergence> {
    const { fleet, plans, sets, slots } = this.#deps
    slots.config(name)
    plans.swaps.drop(name)
    const wasUp = isServing(slots.status(name).state)
    if (!wasUp) await this.load(name, { signal })
    // also what was just loaded may have been on its way from an older configuration
    const { modelId, configDrift } = slots.status(name)
    const isRight = modelId === plans.modelId(name) && !configDrift
    if (!isRight) await (sets.find(name)?.restart(signal) ?? fleet.owner(name).restart(false, signal))
    await fleet.record(name)
    if (!wasUp) return 'loaded'
    return isRight ? 'skipped' : modelId === plans.modelId(name) ? 'reloaded' : 'swapped'
  }

  async update (name: string, patch: Readonly<Record<string, unknown>>): Promise<NamedSlotConfig> {
    this.#mustHaveFile(name, 'changed')
    return await this.#deps.writer.update(name, patch)
  }

  /** What runs for a file that cannot be read is ended by the fleet, as for one that is deleted by hand. */
  async delete (name: string, { force = false }: { force?: boolean } = {}): Promise<void> {
    const { fleet, sets, writer } = this.#deps
    if (this.#mustHaveFile(name, 'deleted')?.pinned === true && !force) throw pinned(name)
    const set = sets.find(name)
    // the file first: a crash in between leaves an engine without a slot, which the next start removes
    await writer.delete(name, force)
    const members = set?.memberNames() ?? [name]
    await Promise.all(members.map(member => fleet.drop(member, force)))
  }

  async #loadOwn (name: string, signal: AbortSignal): Promise<void> {
    const { lending, sets } = this.#deps
    await (sets.find(name)?.load(signal) ?? lending.admitted(name, signal, owner => owner.load(signal)))
  }

  async #restartOwn (name: string, signal: AbortSignal): Promise<void> {
    const { lending, sets } = this.#deps
    await (sets.find(name)?.restart(signal) ?? lending.admitted(name, signal, owner => owner.restart(false, signal)))
  }

  #mustHaveEngine (name: string, what: string): NamedSlotConfig {
    const shadow = this.#deps.shadows.find(name)
    if (shadow !== null) throw notItsOwn(shadow, what)
    return this.#deps.slots.config(name)
  }

  /**
   * A shadow that an operator made is his; the others are made of the anchor's configuration. Null for a slot whose file
   * cannot be read: it can be mended and deleted.
   */
  #mustHaveFile (name: string, what: string): NamedSlotConfig | null {
    const { shadows, slots } = this.#deps
    const shadow = shadows.find(name)
    if (shadow !== null && !shadow.hasFile) throw notItsOwn(shadow, what)
    return slots.unread().some(unread => unread.name === name) ? null : slots.config(name)
  }
}

function pinned (name: string): Error {
  return svcError('slot.pinned', `slot '${name}' is pinned; use force to stop it anyway`, { details: { slot: name } })
}
