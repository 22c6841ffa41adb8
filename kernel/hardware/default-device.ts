import { deviceOfGpu, mainGpuOf, type Device, type HardwareInfo } from '../contract/index.js'

/**
 * The device that a slot without one gets: what gets most out of the best GPU, else the CPU. A virtual machine with a
 * display adapter only has no GPU. Pure.
 */
export function defaultDeviceOf ({ gpus }: Pick<HardwareInfo, 'gpus'>): Device {
  const main = mainGpuOf(gpus)
  return (main === undefined ? null : deviceOfGpu(main)) ?? 'cpu'
}
