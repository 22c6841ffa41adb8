import { deviceClassOf, gpusOfSlot, type GpuInfo } from '../../contract/index.js'
import type { MemoryPool } from '../../hardware/memory-pools.js'
import { isAnchor, isArbitrated, type IdleFacts } from './idle-policy.js'
import { isBusy, usedAt } from './leases.js'
import type { ScheduledSlot } from './scheduled-slot.js'
import { isServing } from './slot-machine.js'

/** What eviction knows of a slot. */
export interface Tenant extends IdleFacts { readonly core: ScheduledSlot }

/** A pool that has less left than it should. Sizes in MiB. */
export interface Shortage {
  readonly pool: MemoryPool
  readonly floorMb: number
}

/** A slot is left alone this long after its last request: one sweep, so that slots in use do not chase each other. */
export const MIN_QUIET_MS = 30_000
/** GPUs keep an eighth free at most: their memory is there to be filled, and a small one may have less than is wanted. */
const GPU_SHARE = 8
/** Less than this is the carve-out of an integrated GPU, which its driver fills by itself. */
const SMALLEST_GPU_POOL_MB = 2_048

/** Pools below their floor, the one that lacks most first. `floorMb` 0 is off. Pure. */
export function shortages (pools: readonly MemoryPool[], floorMb: number): readonly Shortage[] {
  if (floorMb === 0) return []
  return pools.filter(pool => pool.kind === 'ram' || pool.totalMb >= SMALLEST_GPU_POOL_MB)
    .map(pool => ({ pool, floorMb: pool.kind === 'ram' ? floorMb : Math.min(floorMb, Math.floor(pool.totalMb / GPU_SHARE)) }))
    .filter(({ pool, floorMb: floor }) => pool.availableMb < floor)
    .sort((a, b) => lacking(b) - lacking(a))
}

/**
 * The slot to unload so that memory recovers, and what it is unloaded for; null when nothing is short or nothing may
 * go. Of those that could help it is the one that was used least recently. Pure.
 */
export function evictionFor (
  short: readonly Shortage[], tenants: readonly Tenant[], gpus: readonly GpuInfo[], now: number
): { readonly name: string, readonly shortage: Shortage } | null {
  const candidates = tenants.filter(tenant => mayGo(tenant, now)).sort((a, b) => usedAt(a.core) - usedAt(b.core))
  for (const shortage of short) {
    const victim = candidates.find(tenant => livesIn(tenant, shortage.pool, gpus))
    if (victim !== undefined) return { name: victim.slot.name, shortage }
  }
  return null
}

/** Never a slot that works or is waited for, that is pinned, or that the gateway leans on. */
function mayGo ({ slot, provider, device, core }: Tenant, now: number): boolean {
  if (slot.pinned || isAnchor(slot, provider) || isArbitrated(slot, device)) return false
  if (!isServing(core.state) || core.op !== null || core.stopping !== 'no' || isBusy(core)) return false
  return now - usedAt(core) >= MIN_QUIET_MS
}

/** Every engine lives in the host's memory; only those of a GPU's own slots in that GPU's. */
function livesIn ({ slot, device }: Tenant, pool: MemoryPool, gpus: readonly GpuInfo[]): boolean {
  if (pool.kind === 'ram') return true
  if (deviceClassOf(device) !== 'gpu' || device === 'gpu-cuda') return false
  const gpu = gpus.find(({ pci_id: id }) => id === pool.gpu)
  return gpu === undefined || gpusOfSlot(device, slot.gpu_index, gpus).includes(gpu)
}

function lacking ({ pool, floorMb }: Shortage): number {
  return floorMb - pool.availableMb
}
