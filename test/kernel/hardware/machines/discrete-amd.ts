import { card, cpuinfo, hwmon, pciIds, system, type Recording } from './recording.js'

/** A Radeon RX 7900 XTX beside the small graphics of the processor, which comes later on the bus. */
export const discreteAmd: Recording = {
  tree: {
    ...system({
      hostname: 'navi',
      kernel: '6.14.0-33-generic',
      distro: 'Ubuntu 24.04.3 LTS',
      memory: [65_617_124, 51_200_000, 8_388_604],
      cpu: cpuinfo({ model: 'AMD Ryzen 9 9950X 16-Core Processor', vendor: 'AuthenticAMD', cores: 16, threadsPerCore: 2 }),
      dmi: { sys_vendor: 'ASUS', product_name: 'System Product Name', bios_vendor: 'American Megatrends Inc.' }
    }),
    ...card({
      card: 1,
      render: 128,
      slot: '0000:03:00.0',
      driver: 'amdgpu',
      ids: '1002:744c',
      device: {
        mem_info_vram_total: '25753026560\n',
        mem_info_vram_used: '21474836480\n',
        mem_info_gtt_total: '33595967488\n',
        mem_info_gtt_used: '104857600\n',
        gpu_busy_percent: '100\n',
        power_dpm_force_performance_level: 'high\n',
        pp_dpm_sclk: '0: 500Mhz \n1: 2304Mhz *\n2: 2526Mhz \n',
        gpu_metrics: 'x\u0000\u0001\u0003',
        ...hwmon('hwmon', 2, { name: 'amdgpu', temp1_input: '58000', temp1_label: 'edge', temp2_input: '71000', temp2_label: 'junction', power1_average: '303000000', power1_cap: '327000000' })
      }
    }),
    ...card({
      card: 0,
      render: 129,
      slot: '0000:7a:00.0',
      driver: 'amdgpu',
      ids: '1002:13c0',
      device: {
        mem_info_vram_total: '536870912\n', mem_info_vram_used: '18874368\n', mem_info_gtt_total: '33595967488\n', mem_info_gtt_used: '14680064\n', gpu_busy_percent: '0\n',
        gpu_metrics: '\b\u0001\u0002\u0004'
      }
    }),
    'dev/kfd': '',
    'usr/share/misc/pci.ids': pciIds,
    ...hwmon('sys/class/hwmon', 1, { name: 'k10temp', temp1_input: '48250', temp1_label: 'Tctl', temp3_input: '44000', temp3_label: 'Tccd1' })
  }
}
