import type { Device, EngineProvider, HardwareInfo, ProviderCatalog, SlotType } from 'svc-gateway/plugin'
import type { HostBackend } from './ref.js'

const names: Readonly<Record<Device, readonly [label: string, short: string]>> = {
  'npu': ['NPU', 'NPU'],
  'gpu-rocm': ['GPU (ROCm)', 'ROCm'],
  'gpu-vulkan': ['GPU (Vulkan)', 'Vulkan'],
  'gpu-cuda': ['GPU (CUDA)', 'CUDA'],
  'cpu': ['CPU', 'CPU']
}

type Providers = Pick<ProviderCatalog, 'list' | 'defaultFor'>

/** What this host has, as far as the probe knows and an engine is there for it. The CPU always counts. Pure. */
export function hostBackends (hardware: HardwareInfo, providers: Providers): readonly HostBackend[] {
  const has: Readonly<Record<Device, boolean>> = {
    'npu': hardware.npu.present && providers.list().some(({ devices }) => devices.includes('npu')),
    'gpu-vulkan': hardware.gpus.some(gpu => gpu.vulkan_capable),
    'gpu-rocm': hardware.gpus.some(gpu => gpu.vendor === 'amd' && gpu.compute_capable),
    'gpu-cuda': hardware.gpus.some(gpu => gpu.vendor === 'nvidia' && gpu.compute_capable),
    'cpu': true
  }
  const order: readonly Device[] = ['npu', 'gpu-vulkan', 'gpu-rocm', 'gpu-cuda', 'cpu']
  return order.filter(device => has[device]).map(device => {
    const provider = providerFor('llm', device, providers)
    const [label, short] = names[device]
    return { id: device, label, short, provider: provider?.name ?? null, multiplex: (provider?.children?.length ?? 0) > 0 }
  })
}

/** The engine for a type of slot on a device: the default one, else the first that can. Pure. */
export function providerFor (type: SlotType, device: Device, providers: Providers): EngineProvider | null {
  const able = providersFor(type, device, providers.list())
  const usual = providers.defaultFor(type, device)
  return able.find(({ name }) => name === usual?.name) ?? able[0] ?? null
}

/** Engines that run such slots on the device, or serve them beside their own there. Pure. */
export function providersFor (type: SlotType, device: Device, providers: readonly EngineProvider[]): readonly EngineProvider[] {
  return providers.filter(({ devices, slotTypes, children = [] }) =>
    devices.includes(device) && (slotTypes.includes(type) || children.some(child => child.type === type)))
}
