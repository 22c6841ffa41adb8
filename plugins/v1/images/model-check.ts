import {
  svcError, type CatalogueModel, type EngineProvider, type NamedSlotConfig, type ProviderCatalog, type SvcError
} from 'svc-gateway/plugin'
import { imageError } from '../../providers/imagegen/ref.js'

/** Models of all engines that make images, each once. */
export function imageModels (providers: ProviderCatalog): readonly CatalogueModel[] {
  const makers = providers.list().filter(provider => provider.surfaces.image !== undefined)
  const all = makers.flatMap(provider => provider.catalogue ?? [])
  return all.filter((model, i) => all.findIndex(other => other.id === model.id) === i)
}

/**
 * Before anything is stopped or started for it: refuses a model of a catalogue that nothing can drive. What is in no
 * catalogue may be a slot's or an upstream's name.
 */
export function assertUsable (providers: ProviderCatalog, model: string): void {
  const known = imageModels(providers).find(one => one.id === model)
  if (known === undefined || known.problem === null) return
  throw imageError('image.workflow_not_found', `image model '${model}' cannot be used: ${known.problem}`, { param: 'model', details: { model } })
}

/**
 * Refuses a slot that would not know which model is meant: asked for by its own name, it needs one of its own.
 * @param model as the slot gets it: what stands behind an alias
 */
export function assertSlotModel (
  provider: EngineProvider | null, slot: NamedSlotConfig, model: string, providers: ProviderCatalog
): void {
  const { catalogue } = provider ?? {}
  if (catalogue === undefined) return
  if (catalogue.some(one => one.id === model)) return assertUsable(providers, model)
  const own = slot.model.default
  if (own === null || !catalogue.some(one => one.id === own)) throw notCurated(providers, model)
  assertUsable(providers, own)
}

/** What the dispatcher does not find is told in the words of this route; a known model without a slot is another matter. */
export function imageModelError (providers: ProviderCatalog, error: SvcError, model: string): SvcError {
  if (error.code !== 'model.not_found') return error
  if (!imageModels(providers).some(one => one.id === model)) return notCurated(providers, model)
  return svcError('model.not_loaded', `no enabled image slot serves '${model}'; create one with \`svc slot create img --type image\``,
    { param: 'model', details: { model, surface: 'image', slot: null } })
}

function notCurated (providers: ProviderCatalog, model: string): SvcError {
  const ids = imageModels(providers).filter(one => one.problem === null).map(one => one.id)
  return imageError('image.model_not_curated', `'${model}' is not a curated image model; there are: ${ids.join(', ') || 'none'}`,
    { param: 'model', details: { model, models: ids } })
}
