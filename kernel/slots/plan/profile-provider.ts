import type { Device, EngineProvider, NamedProfile, ProviderCatalog, SlotType } from '../../contract/index.js'

/** Whose profile it is; where it does not say, the default engine of what it is for. Null when there is none. Pure. */
export function profileProvider (profile: NamedProfile, providers: Pick<ProviderCatalog, 'ownerOf' | 'defaultFor'>): EngineProvider | null {
  return providers.ownerOf(profile) ?? providers.defaultFor(...usedFor(profile)) ?? null
}

function usedFor ({ device_class: wanted, backend }: NamedProfile): [type: SlotType, device?: Device] {
  if (wanted === 'img') return ['image']
  if (wanted !== 'gpu') return ['llm', wanted]
  return backend === null ? ['llm'] : ['llm', `gpu-${backend}`]
}
