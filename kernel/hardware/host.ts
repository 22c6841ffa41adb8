import { arch, cpus, freemem, hostname, release, totalmem, type } from 'node:os'
import type { HardwareInfo } from '../contract/index.js'
import type { ProbeFiles } from './probe-files.js'
import { parseCpuInfo, parseDistro, parseGroups, parseMemInfo } from './proc-text.js'

export type HostFacts = Pick<HardwareInfo, 'hostname' | 'kernel' | 'distro' | 'cpu_model' | 'uptime_s' | 'cpu_cores' | 'cpu_threads' |
  'ram_mb' | 'ram_available_mb' | 'swap_mb' | 'gpu_group_gids'> & {
  /** The kernel says it runs under a hypervisor. */
    readonly virtual: boolean
    /** Kind of container this process is in; empty outside of one. */
    readonly container: string
    /** Strings of the firmware. */
    readonly dmi: string
  }

/** What /proc, /etc and the firmware say about the machine itself. Sizes in MiB. */
export async function probeHost (files: ProbeFiles): Promise<HostFacts> {
  const [cpuInfo, memInfo, board, kernel, name, distro, uptime, groups, dmi, container] = await Promise.all([
    files.text('/proc/cpuinfo'), files.text('/proc/meminfo'), files.text('/proc/device-tree/model'),
    files.text('/proc/sys/kernel/osrelease'), files.text('/proc/sys/kernel/hostname'), files.text('/etc/os-release'),
    files.text('/proc/uptime'), files.text('/etc/group'), probeDmi(files), probeContainer(files)
  ])
  const cpu = parseCpuInfo(cpuInfo ?? '', (board ?? '').replace(/\0/g, ''))
  const memory = parseMemInfo(memInfo ?? '')
  return {
    hostname: name ?? '',
    kernel: kernel ?? '',
    distro: parseDistro(distro ?? ''),
    cpu_model: cpu.model,
    uptime_s: Number.parseFloat(uptime ?? '') || 0,
    cpu_cores: cpu.cores,
    cpu_threads: cpu.threads,
    ram_mb: memory.total,
    ram_available_mb: memory.available,
    swap_mb: memory.swap,
    gpu_group_gids: parseGroups(groups ?? '', ['render', 'video']),
    virtual: cpu.virtual,
    container,
    dmi
  }
}

async function probeDmi (files: ProbeFiles): Promise<string> {
  const names = ['sys_vendor', 'product_name', 'bios_vendor', 'bios_version', 'board_vendor', 'chassis_vendor']
  const values = await Promise.all(names.map(name => files.text(`/sys/class/dmi/id/${name}`)))
  return values.filter(value => value !== null).join('\n')
}

async function probeContainer (files: ProbeFiles): Promise<string> {
  const known = await files.text('/run/systemd/container')
  if (known !== null && known !== '') return known
  const environment = (await files.text('/proc/1/environ') ?? '').split('\0')
  return environment.find(entry => entry.startsWith('container='))?.slice('container='.length) ?? ''
}

/** Where there is no /proc, node still knows the basics. */
export function withSystemFallback (host: HostFacts): HostFacts {
  if (host.ram_mb > 0) return host
  return {
    ...host,
    hostname: hostname(),
    kernel: release(),
    distro: `${type()} ${arch()}`,
    cpu_model: cpus()[0]?.model ?? '',
    cpu_cores: cpus().length,
    cpu_threads: cpus().length,
    ram_mb: Math.floor(totalmem() / 1024 ** 2),
    ram_available_mb: Math.floor(freemem() / 1024 ** 2)
  }
}
