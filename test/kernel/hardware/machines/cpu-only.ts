import { cpuinfo, hwmon, system, type Recording } from './recording.js'

/** A server whose only graphics are those of its remote console. */
export const cpuOnly: Recording = {
  tree: {
    ...system({
      hostname: 'rome',
      kernel: '5.14.0-570.el9.x86_64',
      distro: 'Rocky Linux 9.6 (Blue Onyx)',
      memory: [263_921_664, 250_000_000, 0],
      cpu: cpuinfo({ model: 'AMD EPYC 7302P 16-Core Processor', vendor: 'AuthenticAMD', cores: 16, threadsPerCore: 2 }),
      dmi: { sys_vendor: 'Supermicro', product_name: 'AS -1014S-WTRT' }
    }),
    'sys/class/drm/card0/device/uevent': 'DRIVER=ast\nPCI_CLASS=30000\nPCI_ID=1A03:2000\nPCI_SLOT_NAME=0000:c3:00.0\n',
    'sys/class/drm/card0/device/vendor': '0x1a03\n',
    'sys/class/drm/card0/device/device': '0x2000\n',
    'dev/dri/card0': '',
    ...hwmon('sys/class/hwmon', 0, { name: 'k10temp', temp1_input: '36000', temp1_label: 'Tctl' })
  }
}
