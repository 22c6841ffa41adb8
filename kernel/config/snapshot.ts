import { isDeepStrictEqual } from 'node:util'
import type { ConfigSnapshot, Manifest, NamedSlotConfig, SvcConfig } from '../contract/index.js'
import { allDiagnostics, type ConfigParts } from './parts.js'
import { layProfiles } from './profiles/seeds.js'
import { layManifest } from './schema/json-files.js'
import { layStacks } from './stacks/seeds.js'

/**
 * What the parts say, as one immutable value. Everything that is equal to what `previous` had is the same object, so
 * readers may compare by identity; when nothing at all changed the result is `previous` itself. Pure.
 */
export function snapshotOf (
  parts: ConfigParts & { readonly svc: { readonly value: SvcConfig | null } }, release: Manifest, previous: ConfigSnapshot | null
): ConfigSnapshot {
  const svc = parts.svc.value ?? previous?.svc
  if (svc === undefined) throw new TypeError('a snapshot needs a svc.toml that was good once')
  const slots = new Map<string, NamedSlotConfig>()
  for (const [name, { value }] of parts.slots) {
    if (value !== null) slots.set(name, keep(previous?.slots.get(name), value))
  }
  const next = {
    svc: keep(previous?.svc, svc),
    slots: keep(previous?.slots, slots),
    profiles: keep(previous?.profiles, layProfiles(parts.profiles.value)),
    stacks: keep(previous?.stacks, layStacks(parts.stacks.value)),
    capabilities: keep(previous?.capabilities, parts.capabilities.value),
    upstreams: keep(previous?.upstreams, parts.upstreams.value),
    providers: keep(previous?.providers, parts.providers.value),
    manifest: keep(previous?.manifest, layManifest(release, parts.manifest.value)),
    hardware: keep(previous?.hardware, parts.hardware.value),
    diagnostics: keep(previous?.diagnostics, allDiagnostics(parts))
  }
  const same = previous !== null && Object.entries(next).every(([key, value]) => previous[key as keyof ConfigSnapshot] === value)
  return same ? previous : Object.freeze({ revision: (previous?.revision ?? 0) + 1, ...next })
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
