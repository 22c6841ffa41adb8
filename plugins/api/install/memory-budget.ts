import { deviceClassOf, gpuPoolOf, type Device, type HardwareInfo } from 'svc-gateway/plugin'

const MIB = 1024 * 1024
const KIB_PER_TOKEN = 128
const RESERVE_MB = 1024
const FLOOR = 2048
const STEP = 1024
/** As the kernel derives it by default. */
const DERIVED_CAP = 32_768
const SAFE = 8192

/**
 * Memory that models may have on a device, in MiB: half of a memory that GPU and host share, all that a GPU has for itself,
 * else half of what is free. A control group's limit counts. 0 if unknown. Pure.
 */
export function modelBudgetMb (device: Device, hardware: HardwareInfo): number {
  const { ram_available_mb: free, cgroup_max_mb: limit } = hardware
  const capped = (mb: number): number => limit === null ? mb : Math.min(mb, limit)
  if (deviceClassOf(device) !== 'gpu') return capped(Math.floor(free / 2))
  const { mb, shared } = gpuPoolOf(device, hardware)
  return shared ? capped(Math.floor(mb / 2)) : mb
}

/**
 * Context window for a new slot, in tokens: the model's own up to 32768, else 8192, and no more than has room beside its
 * weights at 128 KiB a token with 1 GiB to spare; a multiple of 1024 then, and 2048 at least. Pure.
 */
export function fittingContext (
  { contextLength, sizeBytes }: { readonly contextLength: number, readonly sizeBytes: number }, budgetMb: number
): number {
  const wanted = contextLength > 0 ? Math.min(contextLength, DERIVED_CAP) : SAFE
  if (budgetMb === 0) return wanted
  const room = budgetMb - RESERVE_MB - Math.ceil(sizeBytes / MIB)
  const tokens = Math.floor(room * 1024 / KIB_PER_TOKEN / STEP) * STEP
  return Math.min(wanted, Math.max(FLOOR, tokens))
}
