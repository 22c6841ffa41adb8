import { basename, dirname } from 'node:path'
import type { EngineProvider, ModelCapability, ModelFileFacts, NewModelRow, SlotType } from 'svc-gateway/plugin'
import { idOf, imageFolderOf } from './file-names.js'
import type { ModelSuggestion } from './ref.js'

/** What is known about a file once it has been looked at. */
export interface FoundFile {
  readonly path: string
  readonly resolvedPath: string
  /** Of all parts. */
  readonly sizeBytes: number
  readonly missingParts: readonly string[]
  /** Null for a format without a header to read, or when it cannot be read. */
  readonly facts: ModelFileFacts | null
  /** Why its header cannot be read. */
  readonly damage: string | null
  /** What its name says it can do; null when it says nothing. */
  readonly guess: readonly ModelCapability[] | null
  readonly projector: string | null
  /** `meta.json` beside it, as a pull leaves one. */
  readonly meta: { readonly id?: string, readonly license?: string, readonly repo?: string, readonly file?: string } | null
}

const slotTypeOf: Readonly<Record<ModelCapability, SlotType>> = {
  chat: 'llm', vision: 'llm', embed: 'embedding', rerank: 'reranking', asr: 'transcription', tts: 'tts', image: 'image'
}

const gpuAndCpu = ['vulkan', 'rocm', 'cuda', 'cpu'] as const

/** What a file seems to be, and the row it would get. Pure. */
export function suggestionOf (found: FoundFile, providers: readonly EngineProvider[]): ModelSuggestion {
  const { path, facts, meta } = found
  const isImage = imageFolderOf(path)?.holdsModels === true
  const capabilities = facts?.kind === 'model' ? facts.capabilities : isImage ? ['image' as const] : found.guess ?? []
  const kind = facts?.kind ?? (capabilities.length > 0 ? 'model' : 'unknown')
  const tags = [...facts?.mtp === true ? ['mtp'] : [], ...facts?.tool_calling === true ? ['tool-calling'] : []]
  const able = found.projector !== null && capabilities.includes('chat') && !capabilities.includes('vision')
    ? [...capabilities, 'vision' as const]
    : capabilities
  const row: NewModelRow = {
    path,
    size_bytes: found.sizeBytes,
    ...(facts?.name == null ? {} : { name: facts.name }),
    ...(facts === null || facts.quant === '' ? {} : { quant: facts.quant }),
    ...orNothing('license', meta?.license ?? facts?.license ?? null),
    ...orNothing('hf_repo', meta?.repo ?? null),
    ...orNothing('hf_filename', meta?.file ?? null),
    capabilities: [...able],
    tags,
    backends: backendsOf(able, facts !== null, providers),
    ...(found.projector === null ? {} : { mmproj: found.projector }),
    metadata: metadataOf(facts)
  }
  return {
    id: meta?.id ?? idOf(path),
    path,
    resolved_path: found.resolvedPath,
    kind,
    confidence: found.damage !== null ? 0 : facts !== null ? 0.95 : isImage ? 0.8 : found.guess === null ? 0.2 : 0.6,
    row,
    hints: { folder: basename(dirname(path)), ...hintsOf(facts) },
    problem: problemOf(found, kind)
  }
}

function hintsOf (facts: ModelFileFacts | null): Record<string, unknown> {
  if (facts === null) return {}
  const { architecture, quant, parameter_count, license, split } = facts
  return { architecture, quant, parameter_count, license, split }
}

/** Facts of the header that slots and people use (kernel: `context_length` decides the context size of a slot). */
function metadataOf (facts: ModelFileFacts | null): Record<string, unknown> {
  if (facts === null) return {}
  const { architecture, context_length: context, parameter_count: parameters, embedding_length: embedding } = facts
  return {
    architecture,
    ...(context === null ? {} : { context_length: context }),
    ...(parameters > 0 ? { parameter_count: parameters } : {}),
    ...(embedding === null ? {} : { embedding_length: embedding }),
    has_chat_template: facts.chat_template !== null
  }
}

/** What can run it: llama.cpp's backends for GGUF, else the families of the providers for such slots. */
function backendsOf (capabilities: readonly ModelCapability[], isGguf: boolean, providers: readonly EngineProvider[]): string[] {
  const isText = capabilities.some(capability => ['chat', 'vision', 'embed', 'rerank'].includes(capability))
  if (isGguf && isText) return [...gpuAndCpu]
  const types = new Set(capabilities.map(capability => slotTypeOf[capability]))
  const able = providers.filter(({ slotTypes }) => slotTypes.some(type => types.has(type)))
  return [...new Set(able.map(({ family }) => family))].sort()
}

function problemOf ({ path, damage, missingParts }: FoundFile, kind: ModelSuggestion['kind']): string | null {
  if (damage !== null) return damage
  const [missing] = missingParts
  if (missing !== undefined) return `its part ${basename(missing)} is missing`
  if (imageFolderOf(path)?.holdsModels === false) return 'it belongs to an image model and is not one itself'
  if (kind === 'projector' || kind === 'adapter') return `it is ${kind === 'adapter' ? 'an adapter' : 'a projector'} and not a model by itself`
  return kind === 'unknown' ? 'its use is unknown' : null
}

function orNothing<K extends string> (key: K, value: string | null): Partial<Record<K, string>> {
  return value === null || value === '' ? {} : { [key]: value } as Record<K, string>
}
