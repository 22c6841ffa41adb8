/** Files of a machine below /proc, /sys, /dev, /etc and /run, as cut down as the probe allows: path to content. */
export type Tree = Readonly<Record<string, string>>

export interface Recording {
  readonly tree: Tree
  /** What `nvidia-smi --query-gpu=... --format=csv,noheader,nounits` prints there. */
  readonly nvidiaSmi?: string
}

export interface Processor {
  readonly model: string
  readonly vendor: 'AuthenticAMD' | 'GenuineIntel'
  readonly cores: number
  readonly threadsPerCore: number
  readonly flags?: string
}

export function cpuinfo ({ model, vendor, cores, threadsPerCore, flags = '' }: Processor): string {
  return Array.from({ length: cores * threadsPerCore }, (_, i) => [
    `processor\t: ${i}`, `vendor_id\t: ${vendor}`, 'cpu family\t: 26', 'model\t\t: 112', `model name\t: ${model}`, 'stepping\t: 0',
    'cpu MHz\t\t: 2994.382', 'cache size\t: 1024 KB', 'physical id\t: 0', `siblings\t: ${cores * threadsPerCore}`, `core id\t\t: ${i % cores}`,
    `cpu cores\t: ${cores}`, `flags\t\t: fpu vme de pse tsc msr pae mce cx8 apic sep mtrr${flags === '' ? '' : ` ${flags}`}`,
    'bogomips\t: 5988.76', ''
  ].join('\n')).join('\n') + '\n'
}

export function meminfo (totalKb: number, availableKb: number, swapKb: number): string {
  const line = (name: string, kb: number): string => `${`${name}:`.padEnd(16)}${String(kb).padStart(8)} kB`
  return [
    line('MemTotal', totalKb), line('MemFree', availableKb - 4096), line('MemAvailable', availableKb), line('Buffers', 12344), line('Cached', 4096),
    line('SwapCached', 0), line('SwapTotal', swapKb), line('SwapFree', swapKb), 'HugePages_Total:       0', line('DirectMap4k', 1003520)
  ].join('\n') + '\n'
}

/** Ticks of all processors together, as the first line of /proc/stat orders them. */
export function stat (user: number, system: number, idle: number): string {
  return `cpu  ${user} 120 ${system} ${idle} 900 0 77 0 0 0\ncpu0 ${user} 120 ${system} ${idle} 900 0 77 0 0 0\n` +
    'intr 48270 9 0 0 0 0 0 0 0\nctxt 990210\nbtime 1767225600\nprocesses 4242\nprocs_running 2\nprocs_blocked 0\n'
}

export interface System {
  readonly hostname: string
  readonly kernel: string
  readonly distro: string
  readonly memory: readonly [totalKb: number, availableKb: number, swapKb: number]
  readonly cpu: string
  readonly dmi?: Readonly<Record<string, string>>
}

export function system ({ hostname, kernel, distro, memory, cpu, dmi = {} }: System): Tree {
  return {
    'proc/cpuinfo': cpu,
    'proc/meminfo': meminfo(...memory),
    'proc/stat': stat(1000, 500, 8000),
    'proc/uptime': '351735.47 11112233.91\n',
    'proc/sys/kernel/osrelease': `${kernel}\n`,
    'proc/sys/kernel/hostname': `${hostname}\n`,
    'proc/self/cgroup': '0::/system.slice/svc-api.service\n',
    'proc/1/environ': 'HOME=/\0init=/sbin/init\0TERM=linux\0',
    'sys/fs/cgroup/system.slice/svc-api.service/memory.max': 'max\n',
    'etc/os-release': `PRETTY_NAME="${distro}"\nNAME="${distro.split(' ')[0]!}"\nID=linux\n`,
    'etc/group': 'root:x:0:\nvideo:x:44:svc\nrender:x:991:svc\n',
    ...Object.fromEntries(Object.entries(dmi).map(([name, value]) => [`sys/class/dmi/id/${name}`, `${value}\n`]))
  }
}

export interface Card {
  readonly card: number
  /** Number of the render node; null where this machine has no access to it. */
  readonly render: number | null
  readonly slot: string
  readonly driver: string
  /** `vvvv:dddd` in lowercase hex. */
  readonly ids: string
  /** Files of the PCI device. */
  readonly device?: Tree
  /** Files beside `device`, where i915 has its clocks. */
  readonly node?: Tree
}

export function card ({ card: number, render, slot, driver, ids, device = {}, node = {} }: Card): Tree {
  const [vendor, id] = ids.split(':')
  const files: Tree = {
    uevent: `DRIVER=${driver}\nPCI_CLASS=30000\nPCI_ID=${ids.toUpperCase()}\nPCI_SUBSYS_ID=F111:000A\nPCI_SLOT_NAME=${slot}\nMODALIAS=pci:v0000${vendor!.toUpperCase()}d0000${id!.toUpperCase()}\n`,
    vendor: `0x${vendor}\n`,
    device: `0x${id}\n`,
    ...device
  }
  const at = (name: string, tree: Tree): Tree => Object.fromEntries(Object.entries(tree).map(([file, text]) => [`sys/class/drm/${name}/${file}`, text]))
  const below = Object.fromEntries(Object.entries(files).map(([file, text]) => [`device/${file}`, text]))
  return {
    'sys/class/drm/version': 'drm 1.1.0 20060810\n',
    ...at(`card${number}`, { ...below, ...node }),
    ...at(`card${number}-DP-1`, { status: 'disconnected\n', enabled: 'disabled\n' }),
    [`dev/dri/card${number}`]: '',
    ...(render === null ? {} : { ...at(`renderD${render}`, below), [`dev/dri/renderD${render}`]: '' })
  }
}

/** What hwmon shows of a chip. */
export function hwmon (at: string, number: number, files: Tree): Tree {
  return Object.fromEntries(Object.entries(files).map(([file, text]) => [`${at}/hwmon${number}/${file}`, `${text}\n`]))
}

export const pciIds = [
  '#\tList of PCI ID\'s',
  '1002  Advanced Micro Devices, Inc. [AMD/ATI]',
  '\t13c0  Granite Ridge [Radeon Graphics]',
  '\t1586  Strix Halo [Radeon Graphics / Radeon 8050S Graphics / Radeon 8060S Graphics]',
  '\t\tf111 000a  Framework Desktop',
  '\t744c  Navi 31 [Radeon RX 7900 XT/7900 XTX/7900 GRE/7900M]',
  '10de  NVIDIA Corporation',
  '\t2684  AD102 [GeForce RTX 4090]',
  '8086  Intel Corporation',
  '\t46d1  Alder Lake-N [UHD Graphics]',
  '\ta780  Raptor Lake-S GT1 [UHD Graphics 770]',
  '\t1586  Ethernet of another maker'
].join('\n') + '\n'

const nodes = /^dev\/(?:kfd|nvidia\d+|dri\/renderD\d+|accel\/accel\d+)$/

/** Device nodes that engines could be given there. */
export function deviceNodesOf ({ tree }: Recording): string[] {
  return Object.keys(tree).filter(path => nodes.test(path)).map(path => `/${path}`)
}
