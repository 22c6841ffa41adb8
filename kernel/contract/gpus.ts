import type { Device } from './schemas/enums.js'
import type { GpuInfo, HardwareInfo } from './schemas/hardware.js'

/** Drivers that draw a picture and compute next to nothing. */
const displayDrivers: ReadonlySet<string> = new Set(['nouveau', 'radeon'])

/**
 * How well a GPU suits an engine, by memory of its own, then compute, then driver: 4 a card that computes, 3 a card with
 * Vulkan, 2 integrated graphics that compute, 1 anything else with Vulkan, 0 nothing an engine could use. Pure.
 */
function suitability ({ compute_capable: computes, vulkan_capable: vulkan, integrated, driver }: GpuInfo): number {
  if (!computes && !vulkan) return 0
  if (displayDrivers.has(driver)) return 1
  if (integrated) return computes ? 2 : 1
  return computes ? 4 : 3
}

/** The GPUs that an engine would take, best first; as listed where nothing else decides. Pure. */
export function rankGpus (gpus: readonly GpuInfo[]): readonly GpuInfo[] {
  return [...gpus].sort((a, b) => suitability(b) - suitability(a) || gpuMemoryMb(b) - gpuMemoryMb(a))
}

/** Those that suit engines as well as the best one, best first. Pure. */
export function mainGpusOf (gpus: readonly GpuInfo[]): readonly GpuInfo[] {
  const [main, ...others] = rankGpus(gpus)
  return main === undefined ? [] : [main, ...others.filter(gpu => suitability(gpu) === suitability(main))]
}

/** The best of them. Pure. */
export function mainGpuOf (gpus: readonly GpuInfo[]): GpuInfo | undefined {
  return rankGpus(gpus)[0]
}

/** The runtime that gets most out of a GPU; null if engines cannot use it. Pure. */
export function deviceOfGpu ({ vendor, compute_capable: computes, vulkan_capable: vulkan }: GpuInfo): Device | null {
  if (computes && vendor === 'amd') return 'gpu-rocm'
  if (computes && vendor === 'nvidia') return 'gpu-cuda'
  return vulkan ? 'gpu-vulkan' : null
}

/**
 * The GPUs that a device means, in the order that `gpu_index` of a slot counts them: those of its vendor for ROCm and
 * CUDA, all of the host for Vulkan. A GPU of an unknown vendor counts everywhere. Empty for devices that are no GPU. Pure.
 */
export function gpusOf (device: Device, gpus: readonly GpuInfo[]): readonly GpuInfo[] {
  const vendor = device === 'gpu-rocm' ? 'amd' : device === 'gpu-cuda' ? 'nvidia' : null
  if (vendor !== null) return gpus.filter(gpu => gpu.vendor === vendor || gpu.vendor === 'unknown')
  return device === 'gpu-vulkan' ? gpus : []
}

/** The GPUs that a slot may use: the one it is pinned to, else all that its device means. Pure. */
export function gpusOfSlot (device: Device, gpuIndex: number | null, gpus: readonly GpuInfo[]): readonly GpuInfo[] {
  const all = gpusOf(device, gpus)
  return gpuIndex === null ? all : all.slice(gpuIndex, gpuIndex + 1)
}

/** The GPUs that a slot asks for. */
export interface GpuClaim {
  readonly device: Device
  /** Null is all that the device means. */
  readonly gpuIndex: number | null
}

/**
 * Whether two slots could meet on one GPU. Where the probe knows no GPU that they use, it is what their devices and
 * numbers allow: those with a vendor each never meet, and different numbers of one device are different GPUs. Pure.
 */
export function shareGpu (a: GpuClaim, b: GpuClaim, gpus: readonly GpuInfo[]): boolean {
  const [ofA, ofB] = [gpusOfSlot(a.device, a.gpuIndex, gpus), gpusOfSlot(b.device, b.gpuIndex, gpus)]
  if (ofA.length > 0 && ofB.length > 0) return ofA.some(gpu => ofB.includes(gpu))
  const devices = [a.device, b.device]
  if (devices.includes('gpu-rocm') && devices.includes('gpu-cuda')) return false
  return a.gpuIndex === null || b.gpuIndex === null || a.gpuIndex === b.gpuIndex
}

/** MiB that models may have on a GPU: its own, or what integrated graphics may map of the host's; 0 if unknown. Pure. */
export function gpuMemoryMb ({ integrated, vram_mb: vram, gtt_mb: mapped }: GpuInfo): number {
  return integrated && mapped > 0 ? mapped : vram
}

export interface DeviceMemoryPool {
  /** MiB; 0 if unknown. */
  readonly mb: number
  /** It is the host's memory: never add the two. */
  readonly shared: boolean
}

/** The memory of the best GPU that a device means. Pure. */
export function gpuPoolOf (device: Device, { gpus }: Pick<HardwareInfo, 'gpus'>): DeviceMemoryPool {
  const best = mainGpuOf(gpusOf(device, gpus))
  return best === undefined ? { mb: 0, shared: false } : { mb: gpuMemoryMb(best), shared: best.integrated && best.gtt_mb > 0 }
}
