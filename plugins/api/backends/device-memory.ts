import { readFile } from 'node:fs/promises'
import { freemem, totalmem } from 'node:os'
import { basename, join } from 'node:path'
import { deviceClassOf, gpuMemoryMb, gpusOf, type Device, type GpuInfo, type HardwareInfo } from 'svc-gateway/plugin'

export interface DeviceMemory {
  /** MiB; null if unknown. */
  readonly used: number | null
  readonly total: number | null
}

const MIB = 1024 * 1024

/** Memory of the device now. The NPU works in main memory, and so does a GPU that shares it. */
export async function deviceMemory (device: Device, hardware: HardwareInfo, sys = '/sys'): Promise<DeviceMemory> {
  if (deviceClassOf(device) !== 'gpu') return { used: mib(totalmem() - freemem()), total: mib(totalmem()) }
  const gpus = gpusOf(device, hardware.gpus)
  const total = gpus.reduce((sum, gpu) => sum + gpuMemoryMb(gpu), 0)
  const used = (await Promise.all(gpus.map(gpu => gpuUsed(gpu, sys)))).filter(bytes => bytes !== null)
  const isKnown = gpus.length > 0 && used.length === gpus.length
  return { used: isKnown ? mib(used.reduce((sum, bytes) => sum + bytes, 0)) : null, total: total === 0 ? null : total }
}

function mib (bytes: number): number {
  return Math.round(bytes / MIB)
}

/** Bytes; amdgpu tells, other drivers have no such file. */
async function gpuUsed ({ drm_path: node, integrated }: GpuInfo, sys: string): Promise<number | null> {
  if (node === '') return null
  const read = async (file: string): Promise<number> =>
    Number(await readFile(join(sys, 'class/drm', basename(node), 'device', file), 'utf8').catch(() => 'NaN'))
  const bytes = await read('mem_info_vram_used') + (integrated ? await read('mem_info_gtt_used') : 0)
  return Number.isFinite(bytes) ? bytes : null
}
