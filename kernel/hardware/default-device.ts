import type { Device, HardwareInfo } from '../contract/index.js'

/**
 * The device that a slot without one gets: ROCm where an AMD GPU computes, CUDA where NVIDIA's driver runs, Vulkan on any
 * other real GPU, else the CPU. A virtual machine with a display adapter only has no GPU. Pure.
 */
export function defaultDeviceOf ({ gpus }: Pick<HardwareInfo, 'gpus'>): Device {
  if (gpus.some(gpu => gpu.vendor === 'amd' && gpu.compute_capable)) return 'gpu-rocm'
  if (gpus.some(gpu => gpu.vendor === 'nvidia' && gpu.compute_capable)) return 'gpu-cuda'
  return gpus.some(gpu => gpu.vulkan_capable) ? 'gpu-vulkan' : 'cpu'
}
