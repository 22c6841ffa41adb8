import { createHash } from 'node:crypto'
import {
  backendDevices, capabilityAliases, deviceBackends, deviceClasses, deviceClassOf, devices, gpuBackends, modelCapabilities,
  slotRoles, slotStates, slotTypes, speechFormats, type Device, type ProviderCatalog
} from 'svc-gateway/plugin'
import type { Enums } from './schemas.js'
import { curatedModelTags, deviceTexts, recommendedDevice } from './vocabulary.js'

/** Every closed vocabulary in one document; what depends on providers comes from those that are loaded. Pure. */
export function enumsDocument (catalog: ProviderCatalog): Enums {
  const providers = catalog.list()
  const backends = { ...backendDevices, ...Object.fromEntries(catalog.deviceWords) }
  const usual = catalog.defaultFor('llm')
  const profileOf = (device: Device): string => catalog.defaultFor('llm', device)?.defaultProfile?.(device, 'llm') ?? ''
  const families = [...new Set(providers.map(({ family }) => family))]
  return {
    devices: devices.map(id => ({
      id,
      ...deviceTexts[id],
      device_class: deviceClassOf(id),
      default_profile: profileOf(id),
      legacy_backend: deviceBackends[id],
      recommended: id === recommendedDevice
    })),
    backends: Object.keys(backends),
    selectable_backends: [...gpuBackends, 'cpu', 'auto'],
    device_classes: [...deviceClasses],
    slot_types: [...slotTypes],
    slot_states: [...slotStates],
    slot_roles: [...slotRoles],
    speech_formats: [...speechFormats],
    runtime_families: families,
    model_capabilities: [...modelCapabilities],
    capability_aliases: { ...capabilityAliases },
    // the default provider's models are told apart by the hardware they run on, all others by their engine
    model_backends: [...gpuBackends, 'cpu', ...families.filter(family => family !== usual?.family)],
    curated_model_tags: [...curatedModelTags],
    backend_to_device: { ...backends, ...Object.fromEntries(devices.map(device => [device, device])) },
    device_to_backend: { ...deviceBackends },
    device_default_profiles: Object.fromEntries(devices.map(device => [device, profileOf(device)])),
    provider_aliases: Object.fromEntries(catalog.aliases),
    default_providers: Object.fromEntries(slotTypes.map(type => [type, {
      any: catalog.defaultFor(type)?.name ?? null,
      ...Object.fromEntries(devices.map(device => [device, catalog.defaultFor(type, device)?.name ?? null]))
    }])),
    providers: providers.map(provider => ({
      name: provider.name,
      title: provider.title,
      family: provider.family,
      devices: [...provider.devices],
      slot_types: [...provider.slotTypes],
      needs_model: provider.needsModel,
      exclusivity: provider.exclusivity,
      cli: provider.cli
    }))
  }
}

/** Weak: changes with the release, and with the set of providers. Pure. */
export function enumsTag (version: string, { providers, default_providers: defaults }: Enums): string {
  const digest = createHash('sha256').update(JSON.stringify([providers, defaults])).digest('hex').slice(0, 12)
  return `W/"svc-enums-${version}-${digest}"`
}

/** Whether an `If-None-Match` header names the tag; weak comparison, as RFC 9110 13.1.2 wants it. Pure. */
export function namesTag (header: string | undefined, tag: string): boolean {
  if (header === undefined) return false
  const opaque = (value: string): string => value.trim().replace(/^W\//, '')
  return header.trim() === '*' || header.split(',').some(candidate => opaque(candidate) === opaque(tag))
}
