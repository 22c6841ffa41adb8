import { isDeepStrictEqual } from 'node:util'
import type { CapabilityChild, CapabilitySelections, ConfigSnapshot, NamedProfile, NamedSlotConfig, NamedToolServer, SvcConfig, WrittenSlot } from '../contract/index.js'
import { agentRulesOf } from './load-agents.js'
import { allDiagnostics, type ConfigParts } from './parts.js'
import type { LaidProviders } from './laid-providers.js'
import { layManifest } from './schema/json-files.js'
import { layStacks } from './stacks/seeds.js'

/**
 * What the parts say, as one immutable value. Everything that is equal to what `previous` had is the same object, so
 * readers may compare by identity; when nothing at all changed the result is `previous` itself. Pure.
 */
export function snapshotOf (
  parts: ConfigParts & { readonly svc: { readonly value: SvcConfig | null } }, providers: LaidProviders,
  previous: ConfigSnapshot | null
): ConfigSnapshot {
  const svc = parts.svc.value ?? previous?.svc
  if (svc === undefined) throw new TypeError('a snapshot needs a svc.toml that was good once')
  const slots = new Map<string, NamedSlotConfig>()
  for (const [name, { value }] of parts.slots) {
    if (value !== null) slots.set(name, keep(previous?.slots.get(name), slotWithProvider(value, providers)))
  }
  const toolServers = new Map<string, NamedToolServer>()
  for (const [id, { value }] of parts.toolServers) {
    if (value !== null) toolServers.set(id, keep(previous?.toolServers.get(id), value))
  }
  const next = {
    svc: keep(previous?.svc, svc),
    slots: keep(previous?.slots, slots),
    agents: keep(previous?.agents, agentRulesOf(parts)),
    profiles: keep(previous?.profiles, layProfiles(parts.profiles.value, providers)),
    stacks: keep(previous?.stacks, layStacks(parts.stacks.value)),
    capabilities: keep(previous?.capabilities, withProviders(parts.capabilities.value, providers)),
    upstreams: keep(previous?.upstreams, parts.upstreams.value),
    providers: keep(previous?.providers, parts.providers.value),
    toolServers: keep(previous?.toolServers, toolServers),
    manifest: keep(previous?.manifest, layManifest(providers.images, parts.manifest.value)),
    hardware: keep(previous?.hardware, parts.hardware.value),
    diagnostics: keep(previous?.diagnostics, allDiagnostics(parts))
  }
  const same = previous !== null && Object.entries(next).every(([key, value]) => previous[key as keyof ConfigSnapshot] === value)
  return same ? previous : Object.freeze({ revision: (previous?.revision ?? 0) + 1, ...next })
}

export function slotWithProvider (slot: WrittenSlot, providers: LaidProviders): NamedSlotConfig {
  return { ...slot, provider: providers.nameFor({ ...slot, device: slot.device }) }
}

/** Profiles of providers first, then the operator's own. */
function layProfiles (own: readonly NamedProfile[], { profiles }: LaidProviders): ReadonlyMap<string, NamedProfile> {
  const others = own.filter(({ name }) => !profiles.has(name))
  return new Map([...profiles, ...others.map(profile => [profile.name, profile] as const)])
}

function withProviders (selections: CapabilitySelections, providers: LaidProviders): CapabilitySelections {
  return Object.fromEntries(Object.entries(selections).map(([child, selection]) => {
    const { provider } = selection
    return [child as CapabilityChild, provider === null ? selection : { ...selection, provider: providers.canonical(provider) }]
  }))
}

function keep<T> (old: T | undefined, next: T): T {
  return old !== undefined && isDeepStrictEqual(old, next) ? old : deepFreeze(next)
}

/** Maps are typed read-only; freezing would not reach their entries. */
function deepFreeze<T> (value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const item of value instanceof Map ? value.values() : Object.values(value)) deepFreeze(item)
  return Object.freeze(value)
}
