import { deviceClassOf, type EngineProvider, type NamedProfile, type ProviderCatalog } from '../../contract/index.js'

/** The engine that a profile is named or made after, else the one that its device class means. Null when it is not there. */
export function profileProvider (
  { name, image, cloned_from: origin, device_class: wanted }: NamedProfile, providers: Pick<ProviderCatalog, 'get' | 'list' | 'defaultFor'>
): EngineProvider | null {
  for (const candidate of [name, origin, image]) {
    const provider = candidate === null ? undefined : providers.get(candidate)
    if (provider !== undefined) return provider
  }
  if (wanted === 'img') return providers.list().find(({ slotTypes }) => slotTypes.every(type => type === 'image')) ?? null
  if (wanted === 'npu') return providers.list().find(({ devices }) => devices.every(device => deviceClassOf(device) === 'npu')) ?? null
  return providers.defaultFor('llm') ?? null
}
