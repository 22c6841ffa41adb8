import { isDeepStrictEqual } from 'node:util'
import type { ConfigSnapshot, NamedSlotConfig, NamedToolServer, SvcConfig, WrittenSlot } from '../contract/index.js'
import { layTable } from './load/config-table.js'
import { agentRulesOf } from './load/load-agents.js'
import { allDiagnostics, type ConfigParts } from './parts/config-parts.js'
import type { LaidProviders } from './parts/laid-providers.js'

/**
 * What the parts say, as one immutable value. Everything that is equal to what `previous` had is the same object, so
 * readers may compare by identity; when nothing at all changed the result is `previous` itself. Pure.
 */
export function snapshotOf (
  parts: ConfigParts & { readonly svc: { readonly value: SvcConfig | null } }, providers: LaidProviders,
  previous: ConfigSnapshot | null
): ConfigSnapshot {
  const svc = parts.svc.value ?? previous?.svc
  if (svc === undefined) throw new TypeError('a snapshot needs a svc.toml that was valid once')
  const slots = new Map<string, NamedSlotConfig>()
  for (const [name, { value }] of parts.slots) {
    if (value !== null) slots.set(name, keep(previous?.slots.get(name), slotWithProvider(value, providers)))
  }
  const toolServers = new Map<string, NamedToolServer>()
  for (const [id, { value }] of parts.toolServers) {
    if (value !== null) toolServers.set(id, keep(previous?.toolServers.get(id), value))
  }
  const laid = layTable(parts, providers)
  const kept = Object.fromEntries(Object.entries(laid).map(([key, value]) =>
    [key, keep<unknown>(previous?.[key as keyof typeof laid], value)]))
  const next = {
    svc: keep(previous?.svc, svc),
    slots: keep(previous?.slots, slots),
    agents: keep(previous?.agents, agentRulesOf(parts)),
    ...kept as unknown as typeof laid,
    templates: keep(previous?.templates, providers.templates),
    files: keep(previous?.files, filesOf(parts, previous)),
    toolServers: keep(previous?.toolServers, toolServers),
    diagnostics: keep(previous?.diagnostics, allDiagnostics(parts))
  }
  const same = previous !== null && Object.entries(next).every(([key, value]) => previous[key as keyof ConfigSnapshot] === value)
  return same ? previous : Object.freeze({ revision: (previous?.revision ?? 0) + 1, ...next })
}

export function slotWithProvider (slot: WrittenSlot, providers: LaidProviders): NamedSlotConfig {
  return { ...slot, provider: providers.nameFor({ ...slot, device: slot.device }) }
}

/** One that is as it was is the same value: plugins compare by identity. */
function filesOf ({ owned }: ConfigParts, previous: ConfigSnapshot | null): ReadonlyMap<string, unknown> {
  return new Map([...owned].map(([file, { value }]) => [file, keep(previous?.files.get(file), value)]))
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
