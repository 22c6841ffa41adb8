import { shellText, type EngineProvider, type NamedProfile, type ProfileOutlook, type ProviderCatalog } from '../../../contract/index.js'
import { splitArgs } from '../argv/flag-texts.js'
import { mergeArgv } from '../argv/merge.js'
import { profileMisfit } from './profile-fit.js'
import { profileProvider } from '../profile-provider.js'

/** A profile as a slot would meet it: what runs it, for what, and its flags with those of its own opt-in. Pure. */
export function profileOutlook (profile: NamedProfile, providers: Pick<ProviderCatalog, 'ownerOf' | 'defaultFor'>): ProfileOutlook {
  const provider = profileProvider(profile, providers)
  return {
    provider: provider?.name ?? null,
    family: provider?.family ?? null,
    slotTypes: provider === null ? [] : provider.slotTypes.filter(type =>
      provider.devices.some(device => profileMisfit(profile, device, type, provider, providers) === null)),
    resolvedFlags: resolvedFlags(profile, provider)
  }
}

function resolvedFlags (profile: NamedProfile, provider: EngineProvider | null): string {
  if (!profile.mtp) return profile.flags
  const own = splitArgs(profile.flags, 'flags')
  return shellText(mergeArgv({ profile: [...provider?.flags?.mtp?.(profile.backend) ?? [], ...own] }, provider?.flags).argv)
}
