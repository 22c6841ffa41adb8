import { card, cpuinfo, hwmon, pciIds, system, type Recording } from './recording.js'

/** A GeForce RTX 4090 with NVIDIA's own driver beside the graphics of an Intel processor. */
export const nvidia: Recording = {
  tree: {
    ...system({
      hostname: 'ada',
      kernel: '6.12.57+deb13-amd64',
      distro: 'Debian GNU/Linux 13 (trixie)',
      memory: [65_536_000, 40_960_000, 0],
      cpu: cpuinfo({ model: 'Intel(R) Core(TM) i9-14900K', vendor: 'GenuineIntel', cores: 24, threadsPerCore: 1 }),
      dmi: { sys_vendor: 'Micro-Star International Co., Ltd.', product_name: 'MS-7D91' }
    }),
    ...card({ card: 0, render: 128, slot: '0000:00:02.0', driver: 'i915', ids: '8086:a780', node: { gt_act_freq_mhz: '300\n', gt_max_freq_mhz: '1650\n' } }),
    ...card({ card: 1, render: 129, slot: '0000:01:00.0', driver: 'nvidia', ids: '10de:2684' }),
    'proc/driver/nvidia/version': 'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.105.08  Release Build\nGCC version:  gcc version 14.2.0 (Debian 14.2.0-19)\n',
    'proc/driver/nvidia/gpus/0000:01:00.0/information':
      'Model: \t\t NVIDIA GeForce RTX 4090\nIRQ:   \t\t 185\nGPU UUID: \t GPU-6e8d5c1a-0000-0000-0000-000000000000\nVideo BIOS: \t 95.02.3c.80.b1\nBus Type: \t PCIe\nDMA Size: \t 47 bits\nDMA Mask: \t 0x7fffffffffff\nBus Location: \t 0000:01:00.0\nDevice Minor: \t 0\nGPU Firmware: \t 580.105.08\nGPU Excluded:\t No\n',
    'dev/nvidia0': '',
    'dev/nvidiactl': '',
    'usr/share/misc/pci.ids': pciIds,
    ...hwmon('sys/class/hwmon', 5, { name: 'coretemp', temp1_input: '52000', temp1_label: 'Package id 0', temp2_input: '49000', temp2_label: 'Core 0' })
  },
  nvidiaSmi: '00000000:01:00.0, 24564, 20135, 63, 57, 287.41, 2610, NVIDIA GeForce RTX 4090\n'
}
