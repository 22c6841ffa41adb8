import type { HardwareInfo } from './schemas/hardware.js'
import { deviceClassOf, type Device } from './schemas/enums.js'
import { gpuPoolOf } from './gpus.js'

export const fitStatuses = ['fits', 'tight', 'spills', 'too_large', 'unknown'] as const
export type FitStatus = typeof fitStatuses[number]

export interface MemoryFit {
  readonly status: FitStatus
  readonly reasons: readonly string[]
}

const MIB = 1024 * 1024
/** What a model needs besides its weights is not known here; this much of the memory is left to it. */
const TIGHT = 0.85

/**
 * Whether the weights of a model have room on a device. `spills` is more than a GPU has for itself: the rest would stay in
 * main memory, slow and possible. Pure.
 */
export function memoryFit (sizeBytes: number, device: Device, hardware: HardwareInfo): MemoryFit {
  const size = Math.ceil(sizeBytes / MIB)
  const isGpu = deviceClassOf(device) === 'gpu'
  const { mb: own, shared } = isGpu ? gpuPoolOf(device, hardware) : { mb: hardware.ram_mb, shared: true }
  if (size === 0) return { status: 'unknown', reasons: ['the size of the model is not known'] }
  if (own === 0) return { status: 'unknown', reasons: ['the memory of the device is not known'] }
  const all = shared ? own : own + hardware.ram_mb
  const needs = `the model takes ${gib(size)} GiB`
  if (size > all) return { status: 'too_large', reasons: [`${needs}, but there are only ${gib(all)} GiB in total`] }
  if (size > own) return { status: 'spills', reasons: [`${needs}, but the device has only ${gib(own)} GiB; the rest stays in RAM`] }
  if (size > own * TIGHT) return { status: 'tight', reasons: [`${needs} of ${gib(own)} GiB`] }
  return { status: 'fits', reasons: [] }
}

function gib (mib: number): string {
  return (mib / 1024).toFixed(1)
}
