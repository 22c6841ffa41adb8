import type {
  ConfigService, Device, HardwareService, ModelRegistry, NamedSlotConfig, ProviderCatalog, SlotDraft, SlotService, SlotType
} from 'svc-gateway/plugin'
import { capabilityChoices, type CapabilityChild, type CapabilitySelection } from '../../services/capabilities/ref.js'
import { legalPairs, misfitsOf, type CandidateSource, type CatalogModel } from './candidates.js'
import { invalidSelection } from './capability-errors.js'
import { backingSlot, childKinds } from './children.js'
import { hostBackends } from './host-backends.js'
import type { CapabilityOverlay, HostBackend, Place, PlacedModel, SelectionChange, SelectionPatch } from './ref.js'
import { resolveSelection } from './resolve-selection.js'

export interface OverlayServices {
  readonly config: ConfigService
  readonly hardware: HardwareService
  readonly models: ModelRegistry
  readonly providers: ProviderCatalog
  readonly slots: SlotService
  readonly library: { readonly curated: readonly CatalogModel[] }
}

const empty: CapabilitySelection = { device: null, provider: null, model: null, enabled: false }

/** Selections as they are, and the slots behind them. */
export class Overlay implements CapabilityOverlay {
  readonly #services: OverlayServices

  constructor (services: OverlayServices) {
    this.#services = services
  }

  /** What selections are made from, at this moment. */
  source (): CandidateSource {
    const { hardware, library, models, providers, slots } = this.#services
    return {
      models: models.list(),
      curated: library.curated,
      providers: providers.list(),
      catalog: providers,
      hosts: this.backends(),
      hardware: hardware.info,
      misfit: wish => slots.misfit(wish)
    }
  }

  /** The same with everything that engines have of their own, to choose from. */
  async offer (): Promise<CandidateSource> {
    const source = this.source()
    const { models } = this.#services
    const lists = source.providers.map(async provider =>
      [provider.name, await provider.models?.list(models.engineStore(provider)) ?? []] as const)
    return { ...source, engineModels: new Map(await Promise.all(lists)) }
  }

  backends (): readonly HostBackend[] {
    return hostBackends(this.#services.hardware.info, this.#services.providers)
  }

  places (type: SlotType, model: PlacedModel): readonly Place[] {
    return legalPairs({ type }, placed(model), this.source())
      .map(({ device, provider, fit }) => ({ device, provider: provider.name, fit: fit.status, fitReasons: fit.reasons }))
  }

  misfits (type: SlotType, model: PlacedModel, device: Device | null): readonly string[] {
    return misfitsOf({ type }, placed(model), device, this.source())
  }

  slotType (child: CapabilityChild): SlotType {
    return childKinds[child].type
  }

  selection (child: CapabilityChild): CapabilitySelection {
    return capabilityChoices.of(this.#services.config.snapshot)[child] ?? empty
  }

  /** On the NPU it is the anchor's process that serves, whether it has a slot of its own for it or not. */
  slotOf (child: CapabilityChild): string {
    const { slots } = this.#services.config.snapshot
    return this.#servingSlot(child, this.selection(child), slots)
  }

  async select (draft: SlotDraft, child: CapabilityChild, patch: SelectionPatch): Promise<SelectionChange> {
    const before = capabilityChoices.of(draft.config)[child] ?? empty
    const selection = resolveSelection(child, mergedSelection(child, before, patch), this.source())
    await capabilityChoices.put(draft.config, child, selection)
    await this.#shapeSlots(draft, child, before, selection)
    return {
      selection,
      slot: this.#servingSlot(child, selection, draft.config.slots),
      pendingReload: isOnNpu(child, before) || isOnNpu(child, selection)
    }
  }

  async converge (child: CapabilityChild, signal: AbortSignal): Promise<void> {
    const { slots } = this.#services
    const selection = this.selection(child)
    const slot = this.slotOf(child)
    // the anchor serves other things too: its operator says when
    if (isOnNpu(child, selection) || !slots.names().includes(slot)) return
    if (!selection.enabled) {
      // one that the overlay never had is not its own
      if (!slots.config(slot).enabled) await slots.unload(slot, { force: true, signal })
      return
    }
    await slots.converge(slot, { signal })
  }

  async #shapeSlots (
    draft: SlotDraft, child: CapabilityChild, before: CapabilitySelection, now: CapabilitySelection
  ): Promise<void> {
    const slot = backingSlot(child, draft.config.slots)
    if (isOnNpu(child, before) && !isOnNpu(child, now)) await this.#toggle(draft, child, false)
    if (isOnNpu(child, now)) await this.#toggle(draft, child, true)
    else if (now.enabled) return await this.#serve(draft, child, slot, now)
    const owned = before.enabled && !isOnNpu(child, before) && draft.config.slots.has(slot)
    if (owned) await draft.update(slot, { enabled: false })
  }

  async #serve (draft: SlotDraft, child: CapabilityChild, name: string, selection: CapabilitySelection): Promise<void> {
    const { type } = childKinds[child]
    const { device, provider, model } = selection
    const slot = draft.config.slots.get(name)
    if (slot === undefined) {
      await draft.create(name, { type, device, provider, model: { default: model } })
      return
    }
    if (slot.type !== type) {
      throw invalidSelection(child, `slot '${name}' already exists as an ${slot.type} slot; rename or delete it first`)
    }
    await draft.update(name, {
      device,
      provider,
      ...(slot.enabled ? {} : { enabled: true }),
      model: { default: model }
    })
  }

  async #toggle (draft: SlotDraft, child: CapabilityChild, on: boolean): Promise<void> {
    const anchor = anchorFor(child, draft.config.slots, this.#services.providers)
    if (anchor !== null) await draft.update(anchor.name, { npu: { [childKinds[child].npuToggle!]: on } })
    else if (on) throw invalidSelection(child, 'the NPU serves it beside its chat model, but no llm slot is on the NPU; create one first', 'device')
  }

  #servingSlot (child: CapabilityChild, selection: CapabilitySelection, slots: ReadonlyMap<string, NamedSlotConfig>): string {
    const anchor = isOnNpu(child, selection) ? anchorFor(child, slots, this.#services.providers) : null
    if (anchor === null) return backingSlot(child, slots)
    const served = [...slots.values()].find(slot => slot.served_by === anchor.name && slot.type === childKinds[child].type)
    return served?.name ?? anchor.name
  }
}

function placed ({ id, file, sizeBytes, runtimes }: PlacedModel): Parameters<typeof legalPairs>[1] {
  return { id, file, sizeBytes, backends: runtimes, builtIn: null }
}

/**
 * A selection with a patch in it. What followed from the old model or device does not bind the new one: the engine, and on
 * the way to or from the NPU the model, which there is the engine's own. Pure.
 */
function mergedSelection (child: CapabilityChild, before: CapabilitySelection, patch: SelectionPatch): CapabilitySelection {
  const moved = patch.device !== undefined && patch.device !== before.device
  const crossing = moved && childKinds[child].npuToggle !== null && (patch.device === 'npu' || before.device === 'npu')
  return {
    ...before,
    ...(moved || patch.model !== undefined ? { provider: null } : {}),
    ...(crossing ? { model: null } : {}),
    ...patch
  }
}

/** Switched on, and served by the process of an NPU anchor. */
export function isOnNpu (child: CapabilityChild, { enabled, device }: CapabilitySelection): boolean {
  return enabled && device === 'npu' && childKinds[child].npuToggle !== null
}

/** The llm slot on the NPU whose engine serves this beside its own; an enabled one rather than one that is not. */
function anchorFor (
  child: CapabilityChild, slots: ReadonlyMap<string, NamedSlotConfig>, providers: ProviderCatalog
): NamedSlotConfig | null {
  const { type } = childKinds[child]
  const anchors = [...slots.values()].filter(slot => slot.device === 'npu' && slot.type === 'llm' && slot.served_by === null &&
    (providers.get(slot.provider)?.children?.some(other => other.type === type) ?? false))
  return anchors.find(({ enabled }) => enabled) ?? anchors[0] ?? null
}
