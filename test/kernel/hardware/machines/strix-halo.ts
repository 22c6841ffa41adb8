import { card, cpuinfo, hwmon, pciIds, system, type Recording } from './recording.js'

/** A desktop with Ryzen AI Max+ 395: 128 GB that processor, GPU and NPU share. */
export const strixHalo: Recording = {
  tree: {
    ...system({
      hostname: 'halo',
      kernel: '6.17.8-300.fc43.x86_64',
      distro: 'Fedora Linux 43 (Server Edition)',
      memory: [131_478_012, 98_304_000, 8_388_604],
      cpu: cpuinfo({ model: 'AMD RYZEN AI MAX+ 395 w/ Radeon 8060S', vendor: 'AuthenticAMD', cores: 16, threadsPerCore: 2 }),
      dmi: { sys_vendor: 'Framework', product_name: 'Desktop (AMD Ryzen AI Max 300 Series)', bios_vendor: 'INSYDE Corp.', chassis_vendor: 'Framework' }
    }),
    ...card({
      card: 1,
      render: 128,
      slot: '0000:c1:00.0',
      driver: 'amdgpu',
      ids: '1002:1586',
      device: {
        mem_info_vram_total: '536870912\n',
        mem_info_vram_used: '402653184\n',
        mem_info_gtt_total: '118111600640\n',
        mem_info_gtt_used: '32212254720\n',
        gpu_busy_percent: '87\n',
        power_dpm_force_performance_level: 'auto\n',
        pp_dpm_sclk: '0: 600Mhz \n1: 1297Mhz *\n2: 2900Mhz \n',
        // size 0x108, format 3, content 0: a processor with graphics
        gpu_metrics: '\b\u0001\u0003\u0000',
        ...hwmon('hwmon', 4, { name: 'amdgpu', temp1_input: '61000', temp1_label: 'edge', power1_input: '94031000', power1_label: 'PPT', freq1_input: '2643000000', freq1_label: 'sclk' })
      }
    }),
    'dev/kfd': '',
    'usr/share/hwdata/pci.ids': pciIds,
    'sys/class/accel/accel0/device/uevent': 'DRIVER=amdxdna\nPCI_CLASS=118000\nPCI_ID=1022:17F0\nPCI_SUBSYS_ID=F111:000A\nPCI_SLOT_NAME=0000:c2:00.1\n',
    'sys/class/accel/accel0/device/vendor': '0x1022\n',
    'sys/class/accel/accel0/device/device': '0x17f0\n',
    'sys/class/accel/accel0/device/vbnv': 'RyzenAI-npu5\n',
    'sys/class/accel/accel0/device/device_type': '0\n',
    'sys/class/accel/accel0/device/fw_version': '1.1.2.65\n',
    'dev/accel/accel0': '',
    ...hwmon('sys/class/hwmon', 0, { name: 'nvme', temp1_input: '39850', temp1_label: 'Composite' }),
    ...hwmon('sys/class/hwmon', 3, { name: 'k10temp', temp1_input: '66125', temp1_label: 'Tctl' }),
    ...hwmon('sys/class/hwmon', 10, { name: 'amdgpu', temp1_input: '61000' })
  }
}
