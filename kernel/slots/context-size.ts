import type { EngineProvider, Model, SlotConfig } from '../contract/index.js'

const DERIVED_CAP = 32_768
const SAFE_FLOOR = 8_192

type ModelFacts = Pick<Model, 'metadata' | 'defaults'>

/**
 * Context window the model was trained for, in tokens, or null when nobody knows. What the registry says of a model counts
 * only for engines that have their models from there.
 */
export function nativeContext (
  provider: Pick<EngineProvider, 'models'> | null | undefined, id: string | null, model: ModelFacts | null
): number | null {
  if (provider?.models !== undefined) return id === null ? null : provider.models.contextSize?.(id) ?? null
  const fromFile = model?.metadata.context_length
  if (typeof fromFile === 'number' && Number.isInteger(fromFile) && fromFile > 0) return fromFile
  return model?.defaults.context_size ?? null
}

/**
 * Context size a slot runs with, in tokens: what the slot says, else the model's own size up to 32768, else
 * 8192. Never silently 4096.
 * @param native the model's own size
 */
export function contextSizeFor (slot: SlotConfig, native: number | null): number {
  if (slot.model.context_size !== null) return slot.model.context_size
  return native === null ? SAFE_FLOOR : Math.min(native, DERIVED_CAP)
}

/** Slot types whose engines have a context window. */
export function hasContext (slot: SlotConfig): boolean {
  return slot.type === 'llm' || slot.type === 'embedding' || slot.type === 'reranking'
}
