import type { Device, HardwareInfo, NamedSlotConfig, SlotType } from 'svc-gateway/plugin'
import type { HostBackend, Place, PlacedModel } from '../capabilities/ref.js'
import { fittingContext, modelBudgetMb } from './memory-budget.js'
import type { InstallModel } from './model-sources.js'
import { slotKinds, type SlotKindName } from './slot-kinds.js'

/** A slot that is asked for. */
export interface WantedSlot {
  readonly kind: SlotKindName
  readonly slot: string
  /** Null leaves it to each launch. */
  readonly port: number | null
  /** Empty for a slot without a model. */
  readonly modelId: string
  readonly device: Device | null
  readonly profile: string | null
}

/** The host as it is when the slot is made. */
export interface HostFacts {
  readonly slots: ReadonlyMap<string, NamedSlotConfig>
  readonly hardware: HardwareInfo
  readonly defaultDevice: Device
  readonly backends: readonly HostBackend[]
  readonly places: (type: SlotType, model: PlacedModel) => readonly Place[]
  readonly misfits: (type: SlotType, model: PlacedModel, device: Device | null) => readonly string[]
  /** What is known under that id; null for nothing. */
  readonly model: (id: string) => InstallModel | null
  /** Whether a pending model is pulled by itself. */
  readonly pull: boolean
}

export const skipReasons = ['not_applicable_on_this_hardware', 'needs_upstream_routing', 'slot_in_use'] as const
export type SkipReason = typeof skipReasons[number]

type SlotTable = Readonly<Record<string, unknown>>

/** What becomes of a wanted slot. `pull` is the model to get first. */
export type SlotPlan =
  | { readonly action: 'skip', readonly reason: SkipReason, readonly detail: string }
  | { readonly action: 'keep', readonly pull: InstallModel | null }
  | { readonly action: 'update', readonly patch: SlotTable, readonly pull: InstallModel | null }
  | { readonly action: 'create', readonly config: SlotTable, readonly pull: InstallModel | null }

const NPU_CONTEXT = 16_384

/**
 * Whether and how a slot is made on this host. A slot that is there already keeps what it has: it gets a
 * model only when it has none. Pure.
 */
export function planSlot (wanted: WantedSlot, host: HostFacts): SlotPlan {
  const { type } = slotKinds[wanted.kind]
  const model = wanted.modelId === '' ? null : host.model(wanted.modelId)
  if (wanted.modelId !== '' && model === null) {
    return skip('needs_upstream_routing', `'${wanted.modelId}' is unknown here: it is neither curated nor registered; a remote provider may serve it`)
  }
  const present = host.slots.get(wanted.slot)
  return present === undefined ? planNew(wanted, model, host) : planPresent(present, type, model, host.pull)
}

function planPresent (slot: NamedSlotConfig, type: SlotType, model: InstallModel | null, pullsItself: boolean): SlotPlan {
  if (slot.type !== type) return skip('slot_in_use', `slot '${slot.name}' already exists and serves ${slot.type}; rename or delete it first`)
  const held = slot.model.default
  if (held !== null && model !== null && held !== model.id) {
    return skip('slot_in_use', `slot '${slot.name}' has the model '${held}'; \`svc slot swap ${slot.name} --model ${model.id}\` changes it`)
  }
  const pull = model === null || model.installed ? null : model
  if (model === null || held !== null) return { action: 'keep', pull }
  if (pull === null) return { action: 'update', patch: { model: { default: model.id }, meta: noPending, enabled: true }, pull }
  return { action: 'update', patch: { meta: { ...pendingMeta(model.id, pullsItself), pull_failed: null } }, pull }
}

function planNew (wanted: WantedSlot, model: InstallModel | null, host: HostFacts): SlotPlan {
  const place = wanted.kind === 'npu' ? npuPlace(host) : bestPlace(wanted, model, host)
  if (place === null) {
    const on = wanted.device === null ? 'this host' : `${wanted.device} of this host`
    return skip('not_applicable_on_this_hardware', `nothing on ${on} runs ${model === null ? `a slot for ${wanted.kind}` : `'${model.id}'`}${obstacle(wanted, model, host)}`)
  }
  const { type } = slotKinds[wanted.kind]
  const config = {
    type,
    device: place.device,
    provider: place.provider,
    ...(wanted.port === null ? {} : { port: wanted.port }),
    ...(wanted.profile === null ? {} : { profile: wanted.profile }),
    ...(wanted.kind === 'npu' ? { model: { context_size: NPU_CONTEXT } } : {})
  }
  if (model === null) return { action: 'create', config, pull: null }
  const context = type === 'llm' || type === 'embedding' || type === 'reranking'
    ? { context_size: fittingContext(model, modelBudgetMb(place.device, host.hardware)) }
    : {}
  const derived = 'context_size' in context ? { context_for: model.id } : null
  if (model.installed) {
    return { action: 'create', config: { ...config, model: { default: model.id, ...context }, ...(derived === null ? {} : { meta: derived }) }, pull: null }
  }
  return {
    action: 'create',
    // what has no model yet must not start, nor be offered to clients
    config: { ...config, enabled: false, model: context, meta: { ...pendingMeta(model.id, host.pull), ...derived } },
    pull: model
  }
}

/** Takes what a slot waits for out of its file. */
export const noPending: SlotTable = { pending_model: null, pull_wanted: null, pull_failed: null }

function pendingMeta (model: string, pullsItself: boolean): SlotTable {
  return { pending_model: model, pull_wanted: pullsItself }
}

interface ChosenPlace { readonly device: Device, readonly provider: string }

/** The fastest device whose memory holds the model; a GPU that would spill comes after a CPU that would not. Pure. */
export function bestPlace (
  { kind, device }: Pick<WantedSlot, 'kind' | 'device'>, model: InstallModel | null, host: Pick<HostFacts, 'places' | 'defaultDevice'>
): ChosenPlace | null {
  const { type } = slotKinds[kind]
  const rank = (place: Place): number => (place.fit === 'spills' ? 2 : 0) + (place.device === 'cpu' ? 1 : place.device === host.defaultDevice ? 0 : 0.5)
  return host.places(type, placedModel(model))
    .filter(place => place.fit !== 'too_large' && (device === null ? place.device !== 'npu' : place.device === device))
    .toSorted((a, b) => rank(a) - rank(b))[0] ?? null
}

function npuPlace ({ backends }: HostFacts): ChosenPlace | null {
  const npu = backends.find(({ id }) => id === 'npu')
  return npu === undefined || npu.provider === null ? null : { device: 'npu', provider: npu.provider }
}

function placedModel (model: InstallModel | null): PlacedModel {
  return { id: model?.id ?? null, file: model?.file ?? '', sizeBytes: model?.sizeBytes ?? 0, runtimes: model?.runtimes ?? [] }
}

function obstacle ({ kind, device }: WantedSlot, model: InstallModel | null, host: HostFacts): string {
  if (kind === 'npu') return ''
  const { type } = slotKinds[kind]
  const tooLarge = model === null ? undefined : host.places(type, placedModel(model)).find(({ fit }) => fit === 'too_large')
  const reasons = tooLarge?.fitReasons ?? host.misfits(type, placedModel(model), device)
  return reasons.length === 0 ? '' : `: ${reasons.join('; ')}`
}

function skip (reason: SkipReason, detail: string): SlotPlan {
  return { action: 'skip', reason, detail }
}
