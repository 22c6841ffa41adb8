import { basename, isAbsolute, join } from 'node:path'
import { svcError, type EngineProvider, type Model, type ModelRegistry, type NamedSlotConfig } from '../../contract/index.js'
import { makeFolders } from '../../config/files/make-folders.js'
import { modelOfPath } from '../../models/path-model.js'
import { missingFiles, type MissingFile } from './launch/missing-files.js'
import type { EffectiveSlot } from './effective-slot.js'
import type { Swaps } from './swaps.js'

/** Models of slots: which one each has, where its files are, and what is wrong with it. */
export class SlotModels {
  readonly #registry: ModelRegistry
  readonly #swaps: Swaps

  constructor (registry: ModelRegistry, swaps: Swaps) {
    this.#registry = registry
    this.#swaps = swaps
  }

  /** Name of the model that a slot has, in the spelling of its engine; null for none. */
  idOf (slot: NamedSlotConfig, provider: EngineProvider | null): string | null {
    const id = this.#chosen(slot)
    if (id === null) return null
    if (provider?.models !== undefined) return provider.models.canonical(id) ?? id
    return isAbsolute(id) ? modelOfPath(id).id : id
  }

  /** Why an engine cannot have this model, in words; null when it can. */
  problem (provider: EngineProvider | null, id: string): string | null {
    if (provider?.models !== undefined) return provider.models.canonical(id) === null ? notOf(provider, id) : null
    if (provider?.fetches?.(id) === true) return null
    return this.#registry.get(id) === undefined && !isAbsolute(id) ? `model '${id}' is not in the registry` : null
  }

  /** File of the slot's chat template; null for the model's own. */
  chatTemplate (slot: NamedSlotConfig, model: Model | null): string | null {
    const id = slot.chat_template ?? model?.defaults.chat_template ?? 'auto'
    return id === 'auto' ? null : join(this.#registry.store, 'chat-templates', `${basename(id)}.jinja`)
  }

  /** Null for a slot without a model, and for a model that its engine loads by itself. */
  of (slot: NamedSlotConfig, { catalogue = [], fetches }: EngineProvider): Model | null {
    const id = this.#chosen(slot)
    if (id === null || catalogue.some(model => model.id === id)) return null
    if (isAbsolute(id)) return modelOfPath(id)
    const model = this.#registry.get(id)
    if (model !== undefined) return model
    if (fetches?.(id) === true) return null
    throw svcError('model.not_found', `model '${id}' of slot '${slot.name}' is not in the registry; register it or name a file by its absolute path`,
      { param: 'model.default', details: { slot: slot.name, model: id } })
  }

  /** In the engine's spelling. */
  own (slot: NamedSlotConfig, provider: EngineProvider): string | null {
    const id = this.#chosen(slot)
    if (id === null || provider.models === undefined || provider.carriesOnly?.(slot) === true) return null
    const canonical = provider.models.canonical(id)
    if (canonical !== null) return canonical
    throw svcError('slot.config_error', notOf(provider, id), { param: 'model.default', details: { slot: slot.name, model: id } })
  }

  /** Throws `slot.load_failed` for the first file of a launch that cannot be read. */
  async requireFiles (effective: EffectiveSlot): Promise<void> {
    const { slot, provider } = effective
    if (provider.models !== undefined) await makeStore(this.#registry.engineStore(provider), provider)
    const [missing] = await this.missing(effective)
    if (missing === undefined) return
    const { what, path, cause } = missing
    throw svcError('slot.load_failed', `${what} cannot be read at ${path}`, { cause, details: { slot: slot.name, path } })
  }

  /** Files of a launch that cannot be read. */
  async missing (effective: EffectiveSlot): Promise<readonly MissingFile[]> {
    const { slot, model, provider } = effective
    return model === null || !takesModel(provider) ? [] : await missingFiles(slot, model, this.chatTemplate(slot, model))
  }

  /** As it was written, or swapped in. */
  #chosen (slot: NamedSlotConfig): string | null {
    return this.#swaps.of(slot.name)?.model ?? slot.model.default
  }
}

export function noModel (slot: NamedSlotConfig): Error {
  const problem = waitsForModel(slot)
    ? `waits for its model; download it with \`svc model pull ${slot.meta!.pending_model!}\``
    : `has no model; pick one with \`svc slot edit ${slot.name} --model <id>\``
  return svcError('slot.config_error', `slot '${slot.name}' ${problem}`, { param: 'model.default', details: { slot: slot.name } })
}

/** It is enabled with the model that it gets; one that was given another meanwhile waits no more. */
export function waitsForModel ({ model, meta }: NamedSlotConfig): boolean {
  return model.default === null && meta?.pending_model != null
}

export function takesModel (provider: EngineProvider): boolean {
  return provider.takesModel ?? provider.needsModel
}

/** What runs the engine may be another user than the gateway; the folder must be there before it is mounted. */
async function makeStore (path: string, { models }: EngineProvider): Promise<void> {
  await makeFolders(path).catch((error: unknown) => {
    throw svcError('slot.load_failed', `the model store of the engine cannot be created at ${path}; set [models] ${models?.store?.setting ?? 'store'} in svc.toml`,
      { cause: error, details: { path } })
  })
}

function notOf (provider: EngineProvider, id: string): string {
  return `'${id}' is not a model of ${provider.title}`
}
