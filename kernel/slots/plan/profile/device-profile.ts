import {
  gpuBackendOf, svcError, type Device, type NamedProfile, type NamedSlotConfig,
  type ProviderCatalog
} from '../../../contract/index.js'
import { profileMisfit } from './profile-fit.js'

/**
 * The device that a profile brings along when it is chosen without one; null when the slot's suits it. Throws for a device
 * and a profile that were both said and contradict each other. Pure.
 */
export function deviceOfProfile (
  device: Device, profile: NamedProfile | null, said: { readonly device: boolean, readonly profile: boolean }
): Device | null {
  const runtime = gpuBackendOf(device)
  if (!said.profile || profile === null || profile.backend === null || runtime === profile.backend) return null
  if (!said.device) return `gpu-${profile.backend}`
  throw svcError('slot.config_error',
    `device ${device} and profile '${profile.name}' contradict each other: the profile is for ${profile.backend}; leave one of the two out`,
    { details: { device, profile: profile.name, device_backend: runtime, profile_backend: profile.backend }, param: 'profile' })
}

export interface MoveContext {
  readonly profiles: ReadonlyMap<string, NamedProfile>
  readonly providers: Pick<ProviderCatalog, 'get' | 'defaultFor' | 'ownerOf'>
  readonly device: (slot: NamedSlotConfig) => Device
  /** The profile that the slot's model asks for. */
  readonly preferred: (slot: NamedSlotConfig) => string | null
}

/**
 * Whether a slot that was moved keeps the profile in its file. One that suits it stays. One that was not chosen, because it is
 * the default of where the slot was or what its model asks for, goes: the default of the new device counts then. Throws
 * `slot.config_error` for one that was chosen. Pure.
 */
export function keepsProfile (before: NamedSlotConfig, after: NamedSlotConfig, context: MoveContext): boolean {
  const provider = context.providers.get(after.provider)
  if (after.profile === null || provider === undefined) return true
  const device = context.device(after)
  const misfit = profileMisfit(context.profiles.get(after.profile), device, after.type, provider, context.providers)
  if (misfit === null) return true
  if (!isChosen(after.profile, before, context)) return false
  const usual = provider.defaultProfile?.(device, after.type) ?? null
  throw svcError('slot.config_error',
    `profile '${after.profile}' of slot '${after.name}' does not suit ${device}: ${misfit}; with the device, set \`profile\` to one that does, or to null for the usual one${usual === null ? '' : ` ('${usual}')`}`,
    { param: 'profile', details: { slot: after.name, device, profile: after.profile, default_profile: usual } })
}

/** The profile in a slot's file, when it was chosen and suits the slot as it is to be, else null. Pure. */
export function chosenProfile (before: NamedSlotConfig, after: NamedSlotConfig, context: MoveContext): string | null {
  const provider = context.providers.get(after.provider)
  const { profile } = before
  if (profile === null || provider === undefined || !isChosen(profile, before, context)) return null
  const misfit = profileMisfit(context.profiles.get(profile), context.device(after), after.type, provider, context.providers)
  return misfit === null ? profile : null
}

/** False for the default of where the slot is, and for what its model asks for. */
function isChosen (profile: string, slot: NamedSlotConfig, { device, providers, preferred }: MoveContext): boolean {
  const at = device(slot)
  const usual = providers.defaultFor('llm', at)?.defaultProfile?.(at, 'llm')
  return ![usual, providers.get(slot.provider)?.defaultProfile?.(at, slot.type), preferred(slot)].includes(profile)
}
