import { isAbsolute } from 'node:path'
import type { EngineProvider, Model, SlotConfig } from '../../../contract/index.js'
import { modelOfPath } from '../../../models/path-model.js'

const DERIVED_CAP = 32_768
const SAFE_FLOOR = 8_192

type ModelFacts = Pick<Model, 'metadata' | 'defaults'>

/**
 * Context window the model was trained for, in tokens, or null if unknown. What the registry says of a model counts
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

/** What a slot's file says for a model. A size that was derived for another model says nothing. Pure. */
function writtenContext ({ model, meta }: SlotConfig, id: string | null): number | null {
  const derivedFor = meta?.context_for ?? null
  if (derivedFor === null || derivedFor === id) return model.context_size
  return isAbsolute(derivedFor) && modelOfPath(derivedFor).id === id ? model.context_size : null
}

/** The context size of a model of which the slot says nothing: its own up to 32768, else 8192. Pure. */
export function derivedContext (native: number | null): number {
  return native === null ? SAFE_FLOOR : Math.min(native, DERIVED_CAP)
}

/**
 * Context size a slot runs with, in tokens: what the slot says, else what is derived from the model. Never silently
 * 4096. Pure.
 *
 * @param id the model
 * @param native the model's own size
 */
export function contextSizeFor (slot: SlotConfig, id: string | null, native: number | null): number {
  return writtenContext(slot, id) ?? derivedContext(native)
}

/** Slot types whose engines have a context window. */
export function hasContext (slot: SlotConfig): boolean {
  return slot.type === 'llm' || slot.type === 'embedding' || slot.type === 'reranking'
}
