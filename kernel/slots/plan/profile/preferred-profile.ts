import type { Device, ModelRegistry, NamedProfile, NamedSlotConfig, NewEvent, ProviderCatalog } from '../../../contract/index.js'
import { profileMisfit } from './profile-fit.js'

export interface PreferenceContext {
  readonly models: Pick<ModelRegistry, 'get'>
  readonly providers: Pick<ProviderCatalog, 'get' | 'ownerOf'>
  readonly profiles: ReadonlyMap<string, NamedProfile>
}

/**
 * The profile that a model asks for, when it suits the slot; otherwise null, and the event that tells why it was skipped
 *. Pure.
 */
export function preferredProfile (
  slot: NamedSlotConfig, device: Device, modelId: string | null, { models, providers, profiles }: PreferenceContext
): { readonly profile: string | null, readonly skipped: NewEvent | null } {
  const wanted = modelId === null ? undefined : models.get(modelId)?.defaults.profile
  if (wanted === undefined) return { profile: null, skipped: null }
  const provider = providers.get(slot.provider)
  const misfit = provider === undefined ? 'its provider is missing' : profileMisfit(profiles.get(wanted), device, slot.type, provider, providers)
  if (misfit === null) return { profile: wanted, skipped: null }
  return {
    profile: null,
    skipped: {
      type: 'slot.preferred_profile_skipped',
      source: `slot:${slot.name}`,
      message: `profile '${wanted}' that model '${modelId}' asks for was skipped: ${misfit}`,
      data: { slot: slot.name, model: modelId, profile: wanted, reason: misfit }
    }
  }
}
