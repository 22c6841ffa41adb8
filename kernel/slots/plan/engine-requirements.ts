import {
  deviceClassOf, gpuMemoryMb, gpusOfSlot, mainGpuOf, svcError, type Device, type EngineProvider, type GpuInfo, type HardwareInfo,
  type HostFeature, type NamedSlotConfig
} from '../../contract/index.js'

/** What of a slot's engine this machine lacks, in words; empty where it can run. Pure. */
export function unmetRequirements (
  { requires = {} }: Pick<EngineProvider, 'requires'>, device: Device, gpuIndex: number | null, hardware: HardwareInfo
): readonly string[] {
  const { memoryMb = 0, drivers = [], features = [] } = requires
  const gpus = gpusOfSlot(device, gpuIndex, hardware.gpus)
  const best = mainGpuOf(gpus)
  const isGpu = deviceClassOf(device) === 'gpu'
  const own = isGpu ? best === undefined ? 0 : gpuMemoryMb(best) : hardware.ram_mb
  const known = gpus.map(gpu => gpu.driver).filter(driver => driver !== '')
  return [
    ...own > 0 && own < memoryMb ? [`${memoryMb} MiB of memory, and ${isGpu ? 'the GPU' : 'the host'} has ${own}`] : [],
    ...isGpu && drivers.length > 0 && known.length > 0 && !known.some(driver => drivers.includes(driver))
      ? [`the driver ${drivers.join(' or ')}, and the GPU has ${known.join(', ')}`]
      : [],
    ...features.filter(feature => lacks(feature, hardware, gpus)).map(feature => `${featureWords[feature]}, which this machine does not have`)
  ]
}

/** Throws `slot.config_error` for an engine that cannot run here. */
export function assertRequirements (
  slot: Pick<NamedSlotConfig, 'name' | 'gpu_index'>, provider: EngineProvider, device: Device, hardware: HardwareInfo
): void {
  const unmet = unmetRequirements(provider, device, slot.gpu_index, hardware)
  if (unmet.length === 0) return
  throw svcError('slot.config_error', `slot '${slot.name}' cannot run on ${device} here: ${provider.title} needs ${unmet.join('; and ')}`,
    { param: 'device', details: { slot: slot.name, device, provider: provider.name, unmet: [...unmet] } })
}

const featureWords: Readonly<Record<HostFeature, string>> = {
  'compute': 'a GPU that computes', 'vulkan': 'a GPU with Vulkan', 'unified-memory': 'unified memory', 'npu': 'an NPU'
}

function lacks (feature: HostFeature, hardware: HardwareInfo, gpus: readonly GpuInfo[]): boolean {
  // a machine that was never probed lacks nothing
  if (hardware.probed_at === '') return false
  if (feature === 'compute') return !gpus.some(gpu => gpu.compute_capable)
  if (feature === 'vulkan') return !gpus.some(gpu => gpu.vulkan_capable)
  return feature === 'npu' ? !hardware.npu.present : hardware.unified_memory_mb === 0
}
