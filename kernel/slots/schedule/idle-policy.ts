import { deviceClassOf, type Device, type EngineProvider, type NamedSlotConfig } from '../../contract/index.js'

/** A ready slot is called idle after this long without a request. Nothing is stopped for it. */
export const SOFT_IDLE_MS = 300_000

export interface IdleFacts {
  readonly slot: NamedSlotConfig
  readonly provider: EngineProvider | null
  readonly device: Device
}

const anchors = new Set(['agent', 'utility', 'npu'])

/**
 * Slots the gateway leans on, and those whose process serves others: neither the global idle time nor a lack of memory
 * unloads them, only their own idle time does. Pure.
 */
export function isAnchor (slot: NamedSlotConfig, provider: EngineProvider | null): boolean {
  return anchors.has(slot.name) || provider?.children?.some(child => child.active(slot)) === true
}

/** How long an image engine keeps a GPU is for `[image] idle_restore_minutes` to say. Pure. */
export function isArbitrated (slot: NamedSlotConfig, device: Device): boolean {
  return slot.type === 'image' && deviceClassOf(device) === 'gpu'
}

/** Milliseconds without a request after which a slot is unloaded; null is never. Pure. */
export function idleTimeoutMs ({ slot, provider, device }: IdleFacts, globalS: number): number | null {
  if (slot.pinned) return null
  if (slot.idle_timeout_s !== null) return slot.idle_timeout_s === 0 ? null : slot.idle_timeout_s * 1000
  if (isAnchor(slot, provider) || isArbitrated(slot, device) || globalS === 0) return null
  return globalS * 1000
}
