import {
  deviceBackends, type EngineModel, type EngineProvider, type Model, type ModelCapability, type NamedSlotConfig, type SlotType,
  type UpstreamView
} from 'svc-gateway/plugin'
import type { modelTypes, ModelListRow, NpuModelRow, RegistryRow, UpstreamModelRow } from './record-schema.js'

type ModelType = typeof modelTypes[number]

/** Names that stand for whatever serves a purpose; they are no models. */
const aliases: ReadonlySet<string> = new Set([
  'chat', 'primary', 'tiny', 'medium', 'embed', 'rerank', 'npu', 'coding', 'coder', 'whisper', 'moonshine', 'kokoro', 'vibevoice', 'tts-1',
  'tts-1-hd', 'bge-reranker', 'nomic-embed'
])

/** Models that several engines answer for together. */
const OMNI_FOLDER = 'collections/omni'

/** The model store, and the folders of its layout, `<store>/<folder>/…`. */
export interface StoreLayout {
  readonly store: string
  readonly folders: ReadonlySet<string>
}

export function storeLayout (store: string, providers: readonly EngineProvider[]): StoreLayout {
  const ofEngines = providers.flatMap(({ modelFolders = [] }) => modelFolders).map(({ folder }) => folder)
  return { store, folders: new Set([OMNI_FOLDER, ...ofEngines]) }
}

const strongest: ReadonlyArray<readonly [ModelCapability, ModelType]> = [
  ['rerank', 'rerank'], ['embed', 'embed'], ['asr', 'stt'], ['tts', 'tts'], ['image', 'img']
]

/** What a model is for, in one word. A chat model that can also make vectors stays a chat model. Pure. */
export function typeOf (capabilities: readonly ModelCapability[]): ModelType {
  if (capabilities.includes('chat')) return 'chat'
  return strongest.find(([capability]) => capabilities.includes(capability))?.[1] ?? 'chat'
}

/** Pure. `missing` are ids whose file is gone. */
export function registryRow (model: Model, layout: StoreLayout, missing: ReadonlySet<string>): RegistryRow {
  const { added_at: added } = model.metadata
  return {
    ...model,
    object: 'model',
    created: typeof added === 'number' && Number.isInteger(added) ? added : 0,
    owned_by: 'local',
    installed: !missing.has(model.id),
    ns: isBlessed(model.path, layout) ? 'blessed' : 'pulled',
    type: typeOf(model.capabilities)
  }
}

function isBlessed (path: string, { store, folders }: StoreLayout): boolean {
  if (!path.startsWith(`${store}/`)) return false
  const [engine, purpose, ...rest] = path.slice(store.length + 1).split('/')
  return rest.length > 0 && folders.has(`${engine}/${purpose}`)
}

export interface NpuSlot {
  readonly config: NamedSlotConfig
  readonly provider: EngineProvider | null
  readonly modelId: string | null
}

/** What an engine of the NPU keeps in its own store. */
export interface NpuStore {
  readonly provider: EngineProvider
  readonly models: readonly EngineModel[]
}

const npuTypes: Readonly<Partial<Record<ModelCapability, NpuModelRow['type']>>> = { chat: 'llm', embed: 'embedding', asr: 'transcription' }

const npuCapabilities: Readonly<Partial<Record<SlotType, ModelCapability>>> = { llm: 'chat', embedding: 'embed', transcription: 'asr' }

/** Models that the NPU's engines have, then those of slots on the NPU, with those that their process serves besides. Pure. */
export function npuRows (stores: readonly NpuStore[], slots: readonly NpuSlot[]): NpuModelRow[] {
  const kept = stores.flatMap(({ provider, models }) =>
    models.filter(({ installed }) => installed).map(model => npuRow(provider, model.id, model)))
  const ofSlots = slots.flatMap(({ config, provider, modelId }) => {
    const active = provider?.children?.filter(child => child.active(config)) ?? []
    const children = active.map(({ type, model }) => ({ type, id: model }))
    const own = modelId === null ? [] : [{ type: config.type, id: modelId }]
    const models = stores.find(store => store.provider === provider)?.models
    return [...own, ...children].map(({ type, id }) => {
      const tag = provider?.models?.canonical(id) ?? id
      const entry = models?.find(model => model.id === tag)
      const capability = npuCapabilities[type]
      return npuRow(provider, tag, {
        capabilities: entry?.capabilities ?? (capability === undefined ? [] : [capability]),
        // an engine without a list of its own says nothing, and serves what it is given
        installed: entry?.installed ?? models === undefined
      })
    })
  })
  const rows = new Map<string, NpuModelRow>()
  for (const row of [...kept, ...ofSlots]) if (row !== null && !rows.has(row.id)) rows.set(row.id, row)
  return [...rows.values()]
}

/** Its id is the first other spelling that the engine knows: one that nothing else has. */
function npuRow (
  provider: EngineProvider | null, tag: string, { capabilities, installed }: Pick<EngineModel, 'capabilities' | 'installed'>
): NpuModelRow | null {
  const capability = capabilities.find(each => npuTypes[each] !== undefined)
  if (capability === undefined) return null
  const source = provider?.models?.source ?? provider?.name ?? ''
  return {
    id: provider?.models?.aliases?.(tag)[0] ?? tag,
    name: tag,
    object: 'model',
    created: 0,
    owned_by: source,
    upstream: 'npu',
    backend: provider?.models?.source ?? deviceBackends.npu,
    installed,
    type: npuTypes[capability]!,
    capability,
    capabilities: [...capabilities],
    device: 'npu'
  }
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
