import { resolve } from 'node:path'
import {
  messageOf, slotConfigSchema, type Model, type ModelRegistry, type NamedProfile, type NamedSlotConfig,
  type ProviderCatalog, type SlotWish
} from '../../contract/index.js'
import { modelOfPath } from '../../models/path-model.js'
import { formOfRuntime, type RuntimeChoice } from './slot-runtime.js'
import type { ResolvedImage } from '../../runtime/image/image-manifest.js'
import { slotImage } from './slot-image.js'
import { checkOptions } from './slot-options.js'

export interface MisfitDeps {
  readonly providers: ProviderCatalog
  readonly models: ModelRegistry
  readonly profiles: ReadonlyMap<string, NamedProfile>
  readonly runtime: RuntimeChoice
  readonly image: (name: string) => ResolvedImage
}

/** As `SlotService.misfit`. */
export function misfitOf (
  { type, device, provider: name, model: wanted }: SlotWish, { providers, models, profiles, runtime, image }: MisfitDeps
): string | null {
  const provider = providers.get(name)
  if (provider === undefined) return `no such provider: '${name}'`
  const model = wanted === null ? null : models.get(wanted.id) ?? fileOf(wanted)
  const slot: NamedSlotConfig = {
    ...slotConfigSchema.parse({ type, device, model: { default: wanted?.id ?? null } }), provider: name, name: 'new'
  }
  const profile = profiles.get(provider.defaultProfile?.(device, type) ?? '') ?? null
  const problem = provider.slotProblem?.(slot, profile, { device, model }) ?? null
  if (problem !== null || formOfRuntime(provider.runtime ?? null, runtime) === 'process') return problem
  const options = checkOptions(slot, provider).value ?? slot.options
  try {
    slotImage({ slot: { ...slot, options }, profile, provider, device, model }, image)
    return null
  } catch (error) {
    return messageOf(error)
  }
}

/** A model that is not here yet, as far as its file's name tells. */
function fileOf ({ id, file }: NonNullable<SlotWish['model']>): Model | null {
  return file === '' ? null : { ...modelOfPath(resolve('/', file)), id }
}
