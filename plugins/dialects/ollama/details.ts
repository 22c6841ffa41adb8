import { createHash } from 'node:crypto'
import type { Model, ModelFileFacts, ModelObject } from 'svc-gateway/plugin'

/** What is known of a model by which a listed name goes. */
export interface Known {
  readonly row: ModelObject
  /** Of the registry; null for an upstream's, or one that only its engine knows. */
  readonly model: Model | null
}

/** `details` of a model. Pure. */
export function detailsOf (model: Model | null): object {
  const family = textOf(model?.metadata.architecture)
  return {
    parent_model: '',
    format: model?.path.endsWith('.gguf') === true ? 'gguf' : '',
    family,
    families: family === '' ? [] : [family],
    parameter_size: parameterSize(model?.metadata.parameter_count),
    quantization_level: model?.quant ?? ''
  }
}

/** Of the file where its hash is known, else of what tells the model from others here. Pure. */
export function digestOf ({ row, model }: Known): string {
  const hash = model?.metadata.sha256
  if (typeof hash === 'string' && /^[0-9a-f]{64}$/.test(hash)) return hash
  return createHash('sha256').update(model === null ? `${row.owned_by}/${row.id}` : `${model.id} ${model.path} ${model.size_bytes}`).digest('hex')
}

/** A row of `/api/tags`. Pure. */
export function tagRow (name: string, known: Known): object {
  const { row, model } = known
  return {
    name,
    model: name,
    modified_at: row.created_at,
    size: model?.size_bytes ?? 0,
    digest: digestOf(known),
    details: detailsOf(model)
  }
}

/** As GGUF names them. Of a slot's model the context is that of the slot. Pure. */
export function modelInfo ({ row, model }: Known, facts: ModelFileFacts | null): Record<string, unknown> {
  const { metadata } = model ?? { metadata: {} as Model['metadata'] }
  const family = facts?.architecture ?? (textOf(metadata.architecture) || 'unknown')
  const of = (key: string, value: unknown): object => typeof value === 'number' && value > 0 ? { [key]: value } : {}
  return {
    'general.architecture': family,
    ...of('general.parameter_count', facts?.parameter_count ?? metadata.parameter_count),
    ...of(`${family}.context_length`, row.context_length ?? facts?.context_length ?? metadata.context_length),
    ...of(`${family}.embedding_length`, facts?.embedding_length ?? metadata.embedding_length),
    ...of(`${family}.block_count`, facts?.block_count)
  }
}

/** What a model can do, in Ollama's words. An upstream that does not tell is taken to know tools, as most do. Pure. */
export function capabilitiesOf ({ row, model }: Known, facts: ModelFileFacts | null): string[] {
  const said: readonly unknown[] = Array.isArray(row.capabilities) ? row.capabilities : []
  if (said.includes('embed')) return ['embedding']
  const parameters: unknown = row.supported_parameters
  const template = facts?.chat_template ?? ''
  const hasTools = facts === null
    ? model === null && (!Array.isArray(parameters) || parameters.includes('tools'))
    : facts.tool_calling
  return [
    'completion',
    ...hasTools ? ['tools'] : [],
    ...said.includes('vision') ? ['vision'] : [],
    .../enable_thinking|<think>|reasoning_effort/.test(template) ? ['thinking'] : []
  ]
}

function parameterSize (count: unknown): string {
  if (typeof count !== 'number' || count <= 0) return ''
  if (count >= 1e9) return `${(count / 1e9).toFixed(1)}B`
  return count >= 1e6 ? `${(count / 1e6).toFixed(count >= 1e8 ? 0 : 2)}M` : `${Math.round(count / 1e3)}K`
}

function textOf (value: unknown): string {
  return typeof value === 'string' ? value : ''
}
