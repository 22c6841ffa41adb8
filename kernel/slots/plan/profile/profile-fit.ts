import {
  deviceClassOf, gpuBackendOf, type Device, type EngineProvider, type NamedProfile, type ProviderCatalog, type SlotType
} from '../../../contract/index.js'

/** Why a profile does not suit a slot, in words; null when it does. Pure. */
export function profileMisfit (
  profile: NamedProfile | undefined, device: Device, type: SlotType, provider: EngineProvider, providers: Pick<ProviderCatalog, 'get'>
): string | null {
  if (profile === undefined) return 'there is no such profile'
  if (!provider.slotTypes.includes(type)) return `provider ${provider.name} runs no ${type} slots`
  const wanted = type === 'image' ? 'img' : deviceClassOf(device)
  if (profile.device_class !== wanted) return `it is for device class ${profile.device_class}, the slot's is ${wanted}`
  const backend = gpuBackendOf(device)
  if (profile.backend !== null && backend !== null && profile.backend !== backend) {
    return `it is for ${profile.backend}, the slot's device is ${device}`
  }
  const owner = ownerOf(profile, providers)
  if (owner !== null && owner !== provider.name && bringsItsOwn(provider)) return `it is for ${owner}, the slot's provider is ${provider.name}`
  const modes = exclusiveMode(profile)
  if (modes !== null && modes !== type) return `it bakes in ${modes} flags and the slot's type is ${type}`
  return null
}

/** Embedding and reranking cannot share one engine: a profile that bakes one in serves only that type. */
function exclusiveMode (profile: NamedProfile): SlotType | null {
  if (/(^|\s)--embeddings?(\s|$)/.test(profile.flags)) return 'embedding'
  if (/(^|\s)--rerank(ing)?(\s|$)/.test(profile.flags)) return 'reranking'
  return null
}

/** The engine that a profile is named or made after. */
function ownerOf ({ name, image, cloned_from: origin }: NamedProfile, providers: Pick<ProviderCatalog, 'get'>): string | null {
  return [name, origin, image].find(word => word !== null && providers.get(word) !== undefined) ?? null
}

/** An engine without images and profiles of its own may borrow those of another. */
function bringsItsOwn ({ images = {}, profiles = {} }: EngineProvider): boolean {
  return Object.keys(images).length + Object.keys(profiles).length > 0
}
