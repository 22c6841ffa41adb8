import { isAbsolute } from 'node:path'
import type { ModelFiles, ModelRegistry, NamedSlotConfig, ProviderCatalog } from '../../../contract/index.js'
import { slotEntries } from '../../../config/schema/slot-entries.js'
import { isTable, type Table } from '../../../config/toml/toml-file.js'
import { derivedContext, hasContext } from './context-size.js'
import { modelTable } from './model-table.js'

/**
 * A context size that is not set is derived at each launch and stands in no file. Only what must be read from a model's
 * file is kept, with the model that it was derived for (`[meta] context_for`): it goes with that model.
 */
export interface ContextDeps {
  readonly providers: Pick<ProviderCatalog, 'get'>
  readonly models: Pick<ModelRegistry, 'get'>
  readonly modelFiles: Pick<ModelFiles, 'inspect'>
}

type Raw = Readonly<Record<string, unknown>>

/** The context size of a slot whose model only its own file describes; null where it is known otherwise, or not at all. */
export async function contextOfFile (
  slot: NamedSlotConfig, { providers, models, modelFiles }: ContextDeps
): Promise<number | null> {
  const id = slot.model.default
  const own = providers.get(slot.provider)?.models !== undefined
  if (id === null || !isAbsolute(id) || own || !hasContext(slot) || models.get(id) !== undefined) return null
  const length = await modelFiles.inspect(id).then(facts => facts.context_length, () => null)
  return length === null || length <= 0 ? null : derivedContext(length)
}

/** What is added to a new slot. */
export async function createdContext (slot: NamedSlotConfig, raw: Raw, deps: ContextDeps): Promise<Raw> {
  const size = slot.model.context_size === null ? await contextOfFile(slot, deps) : null
  if (size === null) return {}
  const noted = { ...tableOf(raw.meta), context_for: slot.model.default }
  return { model: { ...modelTable(raw.model), context_size: size }, meta: noted }
}

/** What is added to a change of a slot: with another model goes what was derived for the old one. */
export async function changedContext (previous: NamedSlotConfig, patch: Raw, deps: ContextDeps): Promise<Raw> {
  const entries = new Map(slotEntries(patch as Table).map(({ canonical, value }) => [canonical.join('.'), value]))
  const derivedFor = previous.meta?.context_for ?? null
  // from now on it is the user's, unless the writer says for which model it is
  if (entries.has('model.context_size')) {
    return derivedFor === null || entries.has('meta.context_for') ? {} : { meta: meta(patch, null) }
  }
  const given = entries.get('model.default')
  const model = patch.model === null || given === null ? null : typeof given === 'string' ? given : previous.model.default
  if (model === previous.model.default) return {}
  const isDerived = derivedFor !== null && derivedFor !== model
  if (!isDerived && previous.model.context_size !== null) return {}
  const size = model === null ? null : await contextOfFile({ ...previous, model: { ...previous.model, default: model } }, deps)
  if (size === null && !isDerived) return {}
  return {
    ...patch.model === null ? {} : { model: { ...modelTable(patch.model), context_size: size } },
    meta: meta(patch, size === null ? null : model)
  }
}

function meta (patch: Raw, contextFor: string | null): Raw {
  // a table that is taken out goes with every key
  const rest = patch.meta === null ? { pending_model: null, pull_wanted: null, pull_failed: null } : tableOf(patch.meta)
  return { ...rest, context_for: contextFor }
}

function tableOf (value: unknown): Raw {
  return isTable(value) ? value : {}
}
