import {
  deviceClassOf, defaultProvider, shellText, type EngineProvider, type NamedProfile, type ProfileOutlook, type ProviderCatalog
} from '../contract/index.js'
import { mergeArgv } from './argv/merge.js'
import { splitArgs } from './launch-plan.js'
import { mtpFlags } from './mtp.js'
import { profileMisfit } from './profile-fit.js'

/** A profile as a slot would meet it: what runs it, for what, and its flags with those of its own opt-in. Pure. */
export function profileOutlook (profile: NamedProfile, providers: Pick<ProviderCatalog, 'get' | 'list'>): ProfileOutlook {
  const provider = profileProvider(profile, providers)
  return {
    provider: provider?.name ?? null,
    family: provider?.family ?? null,
    slotTypes: provider === null ? [] : provider.slotTypes.filter(type =>
      provider.devices.some(device => profileMisfit(profile, device, type, provider) === null)),
    resolvedFlags: resolvedFlags(profile, provider)
  }
}

/** The engine that a profile is named or made after, else the one that its device class means. Null when it is not there. */
export function profileProvider (
  { name, image, cloned_from: origin, device_class: wanted }: NamedProfile, providers: Pick<ProviderCatalog, 'get' | 'list'>
): EngineProvider | null {
  for (const candidate of [name, origin, image]) {
    const provider = candidate === null ? undefined : providers.get(candidate)
    if (provider !== undefined) return provider
  }
  if (wanted === 'img') return providers.list().find(({ slotTypes }) => slotTypes.every(type => type === 'image')) ?? null
  if (wanted === 'npu') return providers.list().find(({ devices }) => devices.every(device => deviceClassOf(device) === 'npu')) ?? null
  return providers.get(defaultProvider) ?? null
}

function resolvedFlags (profile: NamedProfile, provider: EngineProvider | null): string {
  if (!profile.mtp) return profile.flags
  const own = splitArgs(profile.flags, 'flags')
  return shellText(mergeArgv({ profile: [...mtpFlags(profile.backend), ...own] }, provider?.flags).argv)
}
