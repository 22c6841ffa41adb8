import { gpusOf, mainGpuOf, type Device, type GpuInfo, type HardwareInfo } from 'svc-gateway/plugin'
import type { HardwareView } from './schemas.js'

const labels: Readonly<Record<HardwareInfo['platform'], string>> = {
  'strix-halo': 'AMD Strix Halo',
  'wsl2': 'Windows Subsystem for Linux 2',
  'proxmox-kvm': 'Proxmox virtual machine',
  'kvm': 'KVM virtual machine',
  'lxc': 'LXC container',
  'bare-metal-amd-gpu': 'Bare metal with an AMD GPU',
  'bare-metal-nvidia-gpu': 'Bare metal with an NVIDIA GPU',
  'bare-metal-intel-igpu': 'Bare metal with Intel graphics',
  'bare-metal-cpu-only': 'Bare metal without a GPU',
  'unknown': 'Unknown platform'
}

/**
 * The answer of `/api/hardware`.
 * @param uptimeS of the host at this moment; that of the probe is as old as the probe. Pure.
 */
export function hardwareView (info: HardwareInfo, uptimeS: number): HardwareView {
  const gpu = mainGpuOf(info.gpus)
  const isUma = gpu !== undefined && gpu.integrated && gpu.gtt_mb > 0
  return {
    ...info,
    gpus: info.gpus.map(each => ({ ...each, gpu_index: numbersOf(each, info.gpus) })),
    uptime_s: uptimeS,
    gpu_name: gpu?.name ?? '',
    gpu_vendor: gpu?.vendor ?? null,
    vram_total_mb: isUma ? 0 : info.gpus.reduce((sum, { vram_mb: vram }) => sum + vram, 0),
    gtt_total_mb: gpu?.gtt_mb ?? 0,
    ram_total_mb: info.ram_mb,
    is_uma: isUma,
    cpu_name: info.cpu_model,
    npu_present: info.npu.present,
    npu_name: info.npu.present ? info.npu.name : null,
    platform_label: labels[info.platform],
    memory_kind: isUma ? 'unified' : 'system'
  }
}

const gpuDevices = ['gpu-rocm', 'gpu-cuda', 'gpu-vulkan'] as const satisfies readonly Device[]

/** What `gpu_index` of a slot says to mean this GPU, for each device that can. */
function numbersOf (gpu: GpuInfo, gpus: readonly GpuInfo[]): Record<string, number> {
  const numbers = gpuDevices.map(device => [device, gpusOf(device, gpus).indexOf(gpu)] as const)
  return Object.fromEntries(numbers.filter(([, number]) => number >= 0))
}
