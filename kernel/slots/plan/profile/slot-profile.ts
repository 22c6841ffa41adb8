import {
  svcError, type ConfigService, type Device, type EngineProvider, type NamedProfile, type NamedSlotConfig, type ProviderCatalog
} from '../../../contract/index.js'
import { profileMisfit } from './profile-fit.js'

/**
 * The profile that a slot is launched with; null for none. Throws `slot.config_error` for one that does not suit it.
 * @param name the one that is wanted; null takes the provider's own
 */
export function slotProfile (
  slot: NamedSlotConfig, name: string | null, provider: EngineProvider, device: Device,
  { profiles, providers }: Pick<ConfigService['snapshot'], 'profiles'> & { readonly providers: ProviderCatalog }
): NamedProfile | null {
  if (name === null) {
    const fallback = provider.defaultProfile?.(device, slot.type) ?? null
    return fallback === null ? null : profiles.get(fallback) ?? null
  }
  const profile = profiles.get(name)
  const misfit = profileMisfit(profile, device, slot.type, provider, providers)
  if (misfit === null) return profile!
  throw svcError('slot.config_error', `profile '${name}' does not suit slot '${slot.name}': ${misfit}`,
    { param: 'profile', details: { slot: slot.name, profile: name, device } })
}
