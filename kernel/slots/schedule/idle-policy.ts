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

/**
 * Milliseconds without a request after which a slot is unloaded; null is never. Pure.
 * @param wishMs what a client asked for, for the engine that runs: more than the operator said of the slot, or anything else in
 *   place of the global time; null without a wish
 */
export function idleTimeoutMs (
  { slot, provider, device }: IdleFacts, globalS: number, wishMs: number | null = null
): number | null {
  if (slot.pinned || isArbitrated(slot, device)) return ownTimeoutMs(slot)
  const isOwn = slot.idle_timeout_s !== null || isAnchor(slot, provider)
  const saidMs = isOwn ? ownTimeoutMs(slot) : globalS === 0 ? null : globalS * 1000
  if (wishMs === null || (isOwn && (saidMs === null || wishMs <= saidMs))) return saidMs
  return wishMs === Infinity ? null : wishMs
}

function ownTimeoutMs ({ pinned, idle_timeout_s: ownS }: NamedSlotConfig): number | null {
  return pinned || ownS === null || ownS === 0 ? null : ownS * 1000
}
