import { system, type Recording } from './recording.js'

const core = (i: number): string =>
  `processor\t: ${i}\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd87\n`

/** GB10: an ARM processor and a GPU that share one memory, of which NVIDIA's tool tells nothing. */
export const dgxSpark: Recording = {
  tree: {
    ...system({
      hostname: 'spark',
      kernel: '6.17.0-1008-nvidia',
      distro: 'Ubuntu 24.04.3 LTS',
      memory: [127_600_748, 118_566_368, 16_777_212],
      cpu: Array.from({ length: 20 }, (_, i) => core(i)).join('\n'),
      dmi: { sys_vendor: 'NVIDIA', product_name: 'NVIDIA_DGX_Spark' }
    }),
    'proc/driver/nvidia/gpus/000f:01:00.0/information': 'Model: \t\t NVIDIA GB10\nIRQ:   \t\t 88\nBus Location: \t 000f:01:00.0\nDevice Minor: \t 0\n',
    'dev/nvidia0': '',
    'sys/class/thermal/thermal_zone0/type': 'acpitz\n',
    'sys/class/thermal/thermal_zone0/temp': '45200\n'
  },
  nvidiaSmi: '0000000F:01:00.0, [N/A], [N/A], 0, 35, 11.17, 208, NVIDIA GB10\n'
}
