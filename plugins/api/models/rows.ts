import {
  deviceBackends, type EngineProvider, type Model, type ModelCapability, type NamedSlotConfig, type SlotType, type UpstreamView
} from 'svc-gateway/plugin'
import type { modelTypes, ModelListRow, NpuModelRow, RegistryRow, UpstreamModelRow } from './record-schema.js'

type ModelType = typeof modelTypes[number]

/** Names that stand for whatever serves a purpose; they are no models (management 4.3). */
const aliases: ReadonlySet<string> = new Set([
  'chat', 'primary', 'tiny', 'medium', 'embed', 'rerank', 'npu', 'coding', 'coder', 'whisper', 'moonshine', 'kokoro', 'vibevoice', 'tts-1',
  'tts-1-hd', 'bge-reranker', 'nomic-embed'
])

/** Folders of the gateway's own layout, `<store>/<recipe>/<capability>/…` (management 29.7). */
const recipes: ReadonlySet<string> = new Set([
  'llamacpp/chat', 'llamacpp/embed', 'llamacpp/rerank', 'flm/chat', 'flm/embed', 'whispercpp/stt', 'whispercpp/moonshine', 'kokoro/tts', 'sd-cpp/img',
  'collections/omni'
])

const strongest: ReadonlyArray<readonly [ModelCapability, ModelType]> = [
  ['rerank', 'rerank'], ['embed', 'embed'], ['asr', 'stt'], ['tts', 'tts'], ['image', 'img']
]

/** What a model is for, in one word. A chat model that can also make vectors stays a chat model. Pure. */
export function typeOf (capabilities: readonly ModelCapability[]): ModelType {
  if (capabilities.includes('chat')) return 'chat'
  return strongest.find(([capability]) => capabilities.includes(capability))?.[1] ?? 'chat'
}

/** Pure. `store` is the folder that models are pulled into. */
export function registryRow (model: Model, store: string): RegistryRow {
  const { added_at: added } = model.metadata
  return {
    ...model,
    object: 'model',
    created: typeof added === 'number' && Number.isInteger(added) ? added : 0,
    owned_by: 'local',
    installed: true,
    ns: isBlessed(model.path, store) ? 'blessed' : 'pulled',
    type: typeOf(model.capabilities)
  }
}

function isBlessed (path: string, store: string): boolean {
  if (!path.startsWith(`${store}/`)) return false
  const [recipe, capability, ...rest] = path.slice(store.length + 1).split('/')
  return rest.length > 0 && recipes.has(`${recipe}/${capability}`)
}

export interface NpuSlot {
  readonly config: NamedSlotConfig
  readonly provider: EngineProvider | null
  readonly modelId: string | null
}

const npuTypes: Readonly<Partial<Record<SlotType, readonly [NpuModelRow['type'], ModelCapability]>>> = {
  llm: ['llm', 'chat'], embedding: ['embedding', 'embed'], transcription: ['transcription', 'asr']
}

/** Models of slots on the NPU, with those that their process serves besides. Pure. */
export function npuRows (slots: readonly NpuSlot[]): NpuModelRow[] {
  return slots.flatMap(({ config, provider, modelId }) => {
    const active = provider?.children?.filter(child => child.active(config)) ?? []
    const children = active.map(({ type, model }) => ({ type, id: model }))
    const own = modelId === null ? [] : [{ type: config.type, id: modelId }]
    return [...own, ...children].flatMap(({ type, id }): NpuModelRow[] => {
      const [kind, capability] = npuTypes[type] ?? []
      if (kind === undefined || capability === undefined) return []
      return [{
        id, name: id, object: 'model', created: 0, owned_by: config.provider, upstream: 'npu', backend: deviceBackends.npu, installed: true, type: kind,
        capability, capabilities: [capability], device: 'npu'
      }]
    })
  })
}

/** Pure. */
export function upstreamRows (
  upstreams: readonly UpstreamView[], guess: (id: string) => readonly ModelCapability[] | null
): UpstreamModelRow[] {
  return upstreams.filter(({ enabled }) => enabled).flatMap(({ name, models }) => models.map((id): UpstreamModelRow => ({
    id, name: id, object: 'model', created: 0, owned_by: name, upstream: name, installed: false, ns: 'pulled', type: typeOf(guess(id) ?? ['chat'])
  })))
}

/** One list in which an id stands once, the first of it; what is only another word for a slot is left out and counted. Pure. */
export function composed (
  ...groups: ReadonlyArray<readonly ModelListRow[]>
): { readonly models: ModelListRow[], readonly filtered: number } {
  const rows = new Map<string, ModelListRow>()
  let filtered = 0
  for (const row of groups.flat()) {
    if (aliases.has(row.id) || row.id.startsWith('svcai:')) filtered++
    else if (!rows.has(row.id)) rows.set(row.id, row)
  }
  return { models: [...rows.values()], filtered }
}
