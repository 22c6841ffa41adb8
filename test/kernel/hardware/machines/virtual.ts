import { card, cpuinfo, system, type Recording } from './recording.js'

const guest = { vendor: 'GenuineIntel', cores: 4, threadsPerCore: 1, flags: 'hypervisor' } as const

/** A plain virtual machine of QEMU with a virtio display. */
export const kvm: Recording = {
  tree: {
    ...system({
      hostname: 'guest',
      kernel: '6.1.0-40-cloud-amd64',
      distro: 'Debian GNU/Linux 12 (bookworm)',
      memory: [8_140_440, 7_000_000, 0],
      cpu: cpuinfo({ ...guest, model: 'Intel Xeon Processor (Icelake)' }),
      dmi: { sys_vendor: 'QEMU', product_name: 'Standard PC (Q35 + ICH9, 2009)', bios_vendor: 'SeaBIOS', chassis_vendor: 'QEMU' }
    }),
    ...card({ card: 0, render: 128, slot: '0000:00:01.0', driver: 'virtio-pci', ids: '1af4:1050' })
  }
}

/** A virtual machine of Proxmox. */
export const proxmoxKvm: Recording = {
  tree: {
    ...system({
      hostname: 'pve-guest',
      kernel: '6.12.57+deb13-amd64',
      distro: 'Debian GNU/Linux 13 (trixie)',
      memory: [16_374_480, 15_000_000, 0],
      cpu: cpuinfo({ ...guest, model: 'QEMU Virtual CPU version 2.5+' }),
      dmi: { sys_vendor: 'QEMU', product_name: 'Standard PC (i440FX + PIIX, 1996)', bios_vendor: 'Proxmox distribution of EDK II' }
    })
  }
}

/** An unprivileged container on a Proxmox host with an AMD GPU that was handed in, and a limit on its memory. */
export const proxmoxLxc: Recording = {
  tree: {
    ...system({
      hostname: 'ct101',
      kernel: '6.14.11-4-pve',
      distro: 'Debian GNU/Linux 13 (trixie)',
      memory: [33_554_432, 30_000_000, 524_288],
      cpu: cpuinfo({ model: 'AMD Ryzen 7 5700G with Radeon Graphics', vendor: 'AuthenticAMD', cores: 8, threadsPerCore: 2 }),
      dmi: { sys_vendor: 'ASRock', product_name: 'X300' }
    }),
    'proc/1/environ': 'TERM=linux\0container=lxc\0container_ttys=\0',
    'run/systemd/container': 'lxc\n',
    'proc/self/cgroup': '0::/system.slice/svc-api.service\n',
    'sys/fs/cgroup/memory.max': '34359738368\n',
    ...card({
      card: 0, render: 128, slot: '0000:07:00.0', driver: 'amdgpu', ids: '1002:1638',
      device: { mem_info_vram_total: '2147483648\n', mem_info_vram_used: '21474836\n', mem_info_gtt_total: '33595967488\n', mem_info_gtt_used: '0\n', gpu_metrics: '\b\u0001\u0002\u0002' }
    }),
    'dev/kfd': ''
  }
}

/** Linux in Windows: the GPU is behind /dev/dxg, and only NVIDIA's tool knows it. */
export const wsl2: Recording = {
  tree: {
    ...system({
      hostname: 'DESKTOP-7Q2K',
      kernel: '6.6.87.2-microsoft-standard-WSL2',
      distro: 'Ubuntu 24.04.3 LTS',
      memory: [32_768_000, 30_720_000, 8_388_608],
      cpu: cpuinfo({ model: 'AMD Ryzen 7 7800X3D 8-Core Processor', vendor: 'AuthenticAMD', cores: 8, threadsPerCore: 2, flags: 'hypervisor' })
    }),
    'dev/dxg': ''
  },
  nvidiaSmi: '00000000:2B:00.0, 16376, 1204, 4, 41, 18.90, 210, NVIDIA GeForce RTX 4080 SUPER\n'
}
