import type { HardwareInfo } from 'svc-gateway/plugin'
import type { HostDisplay, SlimHost } from './ref.js'
import type { UnknownHost } from './schemas.js'

/** The virtualization host as `/api/stats/hardware` shows it: what a source knows, else what shows of it from here. */
export class ShownHost implements HostDisplay {
  #source: (() => Promise<SlimHost | null>) | null = null

  show (source: (() => Promise<SlimHost | null>) | null): void {
    this.#source = source
  }

  async read (info: HardwareInfo): Promise<SlimHost | UnknownHost> {
    return await this.#source?.() ?? virtualizationHost(info)
  }
}

/**
 * Whether this machine is a guest of Proxmox: a container tells by its host's kernel, a virtual machine by
 * its firmware. One sign of a container without the other is uncertain: it may be the Proxmox host itself, or another
 * manager of containers. Pure.
 */
export function virtualizationHost ({ kernel, platform, extra }: HardwareInfo): UnknownHost {
  const hasKernel = /-pve$/.test(kernel)
  const isContainer = platform === 'lxc' || (typeof extra.container === 'string' && extra.container.startsWith('lxc'))
  if (platform === 'proxmox-kvm' || (hasKernel && isContainer)) {
    return {
      configured: false,
      detected: true,
      detection: 'detected',
      hint: 'this is a guest of Proxmox: memory and load are as seen by the guest, and other guests share the hardware'
    }
  }
  if (!hasKernel && !isContainer) return { configured: false, detected: false }
  return {
    configured: false,
    detected: false,
    detection: 'uncertain',
    hint: hasKernel ? 'the kernel is that of Proxmox, but this is not one of its containers' : 'this is an LXC container, but its kernel is not that of Proxmox'
  }
}
