import { basename } from 'node:path'
import type { ModelCapability, ModelFileFacts, ModelFileKind, ModelNames } from '../contract/index.js'
import { capabilitiesOfName } from './eligibility.js'
import type { GgufHeader } from './gguf-header.js'

/** Architectures that turn text into vectors and can do nothing else. */
const encoders = /^(bert|nomic-bert|nomic-bert-moe|jina-bert|neo-bert|modern-bert|t5encoder|gemma-embedding|eurobert)/
const RANK_POOLING = 4

/** What a header means for a slot. `path` is of the file, or of the first part of a split one. Pure. */
export function factsOf (path: string, header: GgufHeader, names: readonly ModelNames[]): ModelFileFacts {
  const { values } = header
  const architecture = text(values['general.architecture']) ?? 'unknown'
  const count = (key: string): number | null => positive(values[`${architecture}.${key}`])
  const template = text(values['tokenizer.chat_template'])
  const kind = kindOf(path, architecture, text(values['general.type']))
  const parts = positive(values['split.count'])
  return {
    kind,
    size_bytes: header.size_bytes,
    architecture,
    name: text(values['general.name']),
    license: text(values['general.license']),
    quant: header.quantInName ?? header.quantInFile ?? '',
    context_length: count('context_length'),
    embedding_length: count('embedding_length'),
    block_count: count('block_count'),
    parameter_count: header.parameter_count,
    chat_template: template,
    tool_calling: template !== null && /\btools?\b/.test(template),
    mtp: count('nextn_predict_layers') !== null,
    split: parts === null || parts === 1 ? null : { part: Number(values['split.no'] ?? 0) + 1, parts },
    capabilities: kind === 'model' ? capabilities(path, architecture, header, template !== null, names) : []
  }
}

function kindOf (path: string, architecture: string, type: string | null): ModelFileKind {
  if (type === 'mmproj' || architecture === 'clip' || /(^|[^a-z0-9])mmproj([^a-z0-9]|$)/i.test(basename(path))) return 'projector'
  return type === 'adapter' ? 'adapter' : 'model'
}

/** A ranking head is certain; after it the name is, for embedders are made of chat models and keep their template. */
function capabilities (
  path: string, architecture: string, { values }: GgufHeader, chats: boolean, names: readonly ModelNames[]
): readonly ModelCapability[] {
  const pooling = positive(values[`${architecture}.pooling_type`])
  if (pooling === RANK_POOLING) return ['rerank']
  const named = capabilitiesOfName(basename(path), names)
  if (named !== null) return named
  if (encoders.test(architecture)) return ['embed']
  if (pooling === null) return ['chat']
  return chats ? ['chat', 'embed'] : ['embed']
}

function text (value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

function positive (value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : null
}
