import {
  svcError, type ConfigService, type EngineProvider, type ModelRegistry, type NamedSlotConfig, type ProviderCatalog,
  type SlotService
} from 'svc-gateway/plugin'
import type { CapabilityOverlay } from '../capabilities/ref.js'
import { backendError } from './errors.js'

export interface NpuServices {
  readonly config: ConfigService
  readonly models: ModelRegistry
  readonly overlay: CapabilityOverlay
  readonly providers: ProviderCatalog
  readonly slots: SlotService
}

/**
 * Loads a model into the slot that has the NPU, or into one that is made for it. The NPU runs one chat model at a time.
 * Throws `model.not_found` for what its engine cannot run.
 */
export async function loadOnNpu (
  services: NpuServices, id: string
): Promise<{ readonly slot: string, readonly created: boolean }> {
  const { config, overlay, providers, slots } = services
  const anchors = [...config.snapshot.slots.values()].filter(isAnchor)
  const anchor = anchors.find(({ enabled }) => enabled) ?? anchors[0]
  const usual = overlay.backends().find(backend => backend.id === 'npu')?.provider
  const engine = anchor === undefined ? providers.get(usual ?? '') ?? null : slots.provider(anchor.name)
  const model = modelFor(services, engine, id)
  if (anchor !== undefined) {
    // in one write, which is refused as a whole
    if (!anchor.enabled) await slots.update(anchor.name, { enabled: true, model: { default: model } })
    await slots.load(anchor.name, anchor.enabled ? { model } : {})
    return { slot: anchor.name, created: false }
  }
  const slot = nameFor(model, config)
  requirePort(services)
  await slots.create(slot, { type: 'llm', device: 'npu', model: { default: model } })
  await slots.load(slot)
  return { slot, created: true }
}

/** Throws `backend.not_npu_slot`, and `slot.not_found`. */
export async function unloadFromNpu ({ slots }: NpuServices, name: string): Promise<void> {
  const slot = slots.config(name)
  if (slots.device(name) !== 'npu') {
    throw backendError('backend.not_npu_slot', `slot '${name}' is not on the NPU; use POST /api/slots/${name}/unload`, { param: 'slot_name', details: { slot: slot.name } })
  }
  await slots.unload(name)
}

/** In the spelling of the engine that runs it. */
function modelFor ({ models }: NpuServices, engine: EngineProvider | null, id: string): string {
  const own = engine?.models
  const model = own === undefined ? models.get(id)?.id : own.canonical(id) ?? undefined
  if (model !== undefined) return model
  const message = own === undefined
    ? `model '${id}' is not in the registry; see GET /api/models`
    : `'${id}' is not a model of ${engine!.title}; see GET /api/slots/flm/models`
  throw svcError('model.not_found', message, { param: 'model_id', details: { model_id: id } })
}

function isAnchor (slot: NamedSlotConfig): boolean {
  return slot.device === 'npu' && slot.type === 'llm' && slot.served_by === null
}

function nameFor (model: string, { snapshot }: ConfigService): string {
  const base = `npu-${model.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '')}`.slice(0, 30).replace(/-$/, '')
  for (let i = 1; ; i++) {
    const name = i === 1 ? base : `${base}-${i}`
    if (!snapshot.slots.has(name)) return name
  }
}

/** A slot that no port is left for is not made. The launch chooses one of what is left. */
function requirePort ({ config: { snapshot }, slots }: NpuServices): void {
  const { port_range_start: from, port_range_end: to } = snapshot.svc.slots
  const taken = new Set(slots.names().map(name => slots.status(name).port))
  for (let port = from; port <= to; port++) if (!taken.has(port)) return
  throw backendError('backend.no_slot_port', `every port from ${from} to ${to} belongs to a slot; unload one or widen port_range_start and port_range_end`,
    { details: { from, to } })
}
