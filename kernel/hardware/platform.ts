import { mainGpuOf, type GpuInfo, type HardwareInfo } from '../contract/index.js'

export interface PlatformFacts {
  readonly cpuModel: string
  /** The kernel says it runs under a hypervisor. */
  readonly virtual: boolean
  readonly osRelease: string
  /** Strings of /sys/class/dmi/id, joined. */
  readonly dmi: string
  /** What systemd or the container's own environment call the container; empty outside of one. */
  readonly container: string
  readonly gpus: readonly GpuInfo[]
}

/** In the order of the schema's list: what decides how engines are set up comes before what is merely around it. Pure. */
export function platformOf (facts: PlatformFacts): HardwareInfo['platform'] {
  const { cpuModel, virtual, osRelease, dmi, container, gpus } = facts
  const vendor = mainGpuOf(gpus)?.vendor
  if (/ryzen ai max/i.test(cpuModel)) return 'strix-halo'
  if (/microsoft|wsl/i.test(osRelease)) return 'wsl2'
  if (/proxmox/i.test(dmi)) return 'proxmox-kvm'
  if (/\b(qemu|kvm|amazon ec2|google compute engine|openstack|digitalocean|hetzner)\b/i.test(dmi)) return 'kvm'
  if (/^lxc/.test(container)) return 'lxc'
  if (virtual) return 'unknown'
  if (vendor === 'amd') return 'bare-metal-amd-gpu'
  if (vendor === 'nvidia') return 'bare-metal-nvidia-gpu'
  if (vendor === 'intel') return 'bare-metal-intel-igpu'
  return cpuModel === '' ? 'unknown' : 'bare-metal-cpu-only'
}
