import {
  deviceClassOf, gpuBackendOf, type Device, type EngineProvider, type FlagGrammar, type NamedProfile, type ProviderCatalog,
  type SlotType
} from '../../../contract/index.js'
import { flagKey, isFlag } from '../argv/merge.js'

/** Why a profile does not suit a slot, in words; null when it does. Pure. */
export function profileMisfit (
  profile: NamedProfile | undefined, device: Device, type: SlotType, provider: EngineProvider, providers: Pick<ProviderCatalog, 'ownerOf'>
): string | null {
  if (profile === undefined) return 'there is no such profile'
  if (!provider.slotTypes.includes(type)) return `provider ${provider.name} runs no ${type} slots`
  const wanted = type === 'image' ? 'img' : deviceClassOf(device)
  if (profile.device_class !== wanted) return `it is for device class ${profile.device_class}, the slot's is ${wanted}`
  const backend = gpuBackendOf(device)
  if (profile.backend !== null && backend !== null && profile.backend !== backend) {
    return `it is for ${profile.backend}, the slot's device is ${device}`
  }
  const owner = providers.ownerOf(profile)
  if (owner !== undefined && owner.name !== provider.name && bringsItsOwn(provider)) {
    return `it is for ${owner.name}, the slot's provider is ${provider.name}`
  }
  const mode = modeOf(profile, provider.flags)
  if (mode !== null && mode !== type) return `it bakes in ${mode} flags and the slot's type is ${type}`
  return null
}

/** The type of slot that the flags of a profile set the engine up for; null for any. */
function modeOf ({ flags }: NamedProfile, grammar: FlagGrammar = {}): SlotType | null {
  const { modes = {} } = grammar
  // words as they stand: an open quote is for the launch to refuse
  const keys = flags.split(/\s+/).filter(isFlag).map(word => flagKey(word, grammar))
  return modes[keys.find(key => Object.hasOwn(modes, key)) ?? ''] ?? null
}

/** An engine without images and profiles of its own may borrow those of another. */
function bringsItsOwn ({ images = {}, profiles = {} }: EngineProvider): boolean {
  return Object.keys(images).length + Object.keys(profiles).length > 0
}
