import { applyClasses, type ApplyClass, type SlotService, type SvcConfig } from 'svc-gateway/plugin'
import type { z } from 'zod'
import type { applyPlanSchema, applyRegistrySchema } from './schemas.js'
import { applyClassOf, type SettingKeys } from './setting-keys.js'

type ApplyPlan = z.output<typeof applyPlanSchema>
type ApplyRegistry = z.output<typeof applyRegistrySchema>

/** What has to be started again for a change of the class to count. */
const services: Readonly<Record<ApplyClass, readonly string[]>> = {
  'live': [], 'slot-restart': ['slots'], 'gateway-restart': ['gateway']
}

/** Every key with what a change of it takes. Pure. */
export function applyRegistry (keys: SettingKeys): ApplyRegistry {
  return {
    apply_classes: [...applyClasses],
    registry: Object.fromEntries([...keys].map(([key, apply]) => [key, { apply_class: apply, services: [...services[apply]] }]))
  }
}

/** What becomes of changed keys. `slots` are those whose engine was started from other settings. Pure. */
export function applyPlan (changed: readonly string[], keys: SettingKeys, slots: readonly string[]): ApplyPlan {
  const of = (apply: ApplyClass | null): string[] => changed.filter(key => applyClassOf(keys, key) === apply)
  return {
    live: of('live'),
    slot_restart: of('slot-restart'),
    gateway_restart: of('gateway-restart'),
    unknown: of(null),
    slots: [...slots]
  }
}

export function driftedSlots (slots: SlotService): string[] {
  return slots.names().filter(name => slots.status(name).configDrift)
}

/** What an operator should know about settings that are valid anyway. Pure. */
export function warningsOf ({ server, slots, models }: SvcConfig): string[] {
  return [
    ...isLoopback(server.host) ? [] : [`server.host ${server.host} lets anyone who can reach the port use and manage the gateway: there is no authentication`],
    ...isLoopback(slots.publish_host) ? [] : [`slots.publish_host ${slots.publish_host} exposes engines to the network, bypassing the gateway`],
    ...server.allowed_hosts.includes('*') ? ['server.allowed_hosts has *: the gateway is not protected against DNS rebinding'] : [],
    ...server.allowed_origins.includes('*') ? ['server.allowed_origins has *: any web page may use and manage the gateway'] : [],
    ...models.pull_root === undefined ? [] : ['models.pull_root is the deprecated name of models.store']
  ]
}

function isLoopback (host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.')
}
