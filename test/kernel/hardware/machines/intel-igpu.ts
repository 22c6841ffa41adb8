import { card, cpuinfo, hwmon, pciIds, system, type Recording } from './recording.js'

/** A small N100 box. */
export const intelIgpu: Recording = {
  tree: {
    ...system({
      hostname: 'n100',
      kernel: '6.12.48+deb13-amd64',
      distro: 'Debian GNU/Linux 13 (trixie)',
      memory: [16_187_392, 9_830_400, 1_048_572],
      cpu: cpuinfo({ model: 'Intel(R) N100', vendor: 'GenuineIntel', cores: 4, threadsPerCore: 1 }),
      dmi: { sys_vendor: 'Default string', product_name: 'Default string', bios_vendor: 'American Megatrends International, LLC.' }
    }),
    ...card({
      card: 0,
      render: 128,
      slot: '0000:00:02.0',
      driver: 'i915',
      ids: '8086:46d1',
      node: { 'gt_act_freq_mhz': '0\n', 'gt_cur_freq_mhz': '750\n', 'gt/gt0/rps_act_freq_mhz': '0\n', 'power/rc6_residency_ms': '351700000\n' }
    }),
    'usr/share/misc/pci.ids': pciIds,
    ...hwmon('sys/class/hwmon', 1, { name: 'acpitz', temp1_input: '27800' }),
    ...hwmon('sys/class/hwmon', 2, { name: 'coretemp', temp1_input: '43000', temp1_label: 'Package id 0' })
  }
}
