import { svcError, type ConfigService, type ModelRegistry, type NamedSlotConfig, type SlotService } from 'svc-gateway/plugin'

/** Ports that such slots get, as far as they are free (management 18.5). */
const PORTS = { from: 8088, to: 8099 }

export interface NpuServices {
  readonly config: ConfigService
  readonly models: ModelRegistry
  readonly slots: SlotService
}

/** Loads a model into the slot that has the NPU, or into one that is made for it. The NPU runs one chat model at a time. */
export async function loadOnNpu (
  services: NpuServices, model: string
): Promise<{ readonly slot: string, readonly created: boolean }> {
  const { config, slots } = services
  const anchors = [...config.snapshot.slots.values()].filter(isAnchor)
  const anchor = anchors.find(({ enabled }) => enabled) ?? anchors[0]
  if (anchor !== undefined) {
    if (!anchor.enabled) await slots.update(anchor.name, { enabled: true })
    await slots.load(anchor.name, { model })
    return { slot: anchor.name, created: false }
  }
  if (services.models.get(model) === undefined) {
    throw svcError('model.not_found', `model '${model}' is not in the registry; see GET /api/models`, { param: 'model_id', details: { model_id: model } })
  }
  const slot = nameFor(model, config)
  await slots.create(slot, { type: 'llm', device: 'npu', port: freePort(config), model: { default: model } })
  await slots.load(slot)
  return { slot, created: true }
}

/** Throws `backend.not_npu_slot`, and `slot.not_found`. */
export async function unloadFromNpu ({ slots }: NpuServices, name: string): Promise<void> {
  const slot = slots.config(name)
  if (slots.device(name) !== 'npu') {
    throw svcError('backend.not_npu_slot', `slot '${name}' is not on the NPU; use POST /api/slots/${name}/unload`, { param: 'slot_name', details: { slot: slot.name } })
  }
  await slots.unload(name)
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

function freePort ({ snapshot }: ConfigService): number {
  const taken = new Set([...snapshot.slots.values()].map(slot => slot.port))
  for (let port = PORTS.from; port <= PORTS.to; port++) if (!taken.has(port)) return port
  throw svcError('backend.no_slot_port', `every port from ${PORTS.from} to ${PORTS.to} belongs to a slot; delete one or give it another port`,
    { details: { from: PORTS.from, to: PORTS.to } })
}
