import type { ProbeFiles } from './probe-files.js'
import { numberBetween } from './sensor-value.js'

/** Ticks of all processors together since the machine started. */
export interface CpuTimes {
  readonly busy: number
  readonly total: number
}

/** The first line of /proc/stat. Waiting for a disk is no work; what guests did is in `user` already. Pure. */
export function parseCpuTimes (text: string): CpuTimes | null {
  const line = /^cpu +((?:\d+ ?){4,})/m.exec(text)?.[1]
  if (line === undefined) return null
  const [user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0] = line.trim().split(' ').map(Number)
  const busy = user + nice + system + irq + softirq + steal
  return { busy, total: busy + idle + iowait }
}

/** Share of the time between two readings, 0 to 1; null when no time went by or the counters began anew. Pure. */
export function cpuUtil (before: CpuTimes | null, after: CpuTimes | null): number | null {
  if (before === null || after === null) return null
  const total = after.total - before.total
  const busy = after.busy - before.busy
  // the kernel lets `iowait` go back a little now and then
  if (total <= 0 || busy < 0) return null
  return Math.min(1, busy / total)
}

export async function readCpuTimes (files: ProbeFiles): Promise<CpuTimes | null> {
  return parseCpuTimes(await files.text('/proc/stat') ?? '')
}

/** Sensor chips of processors: AMD, Intel, and the ones of boards. */
const chips = new Set(['k10temp', 'zenpower', 'coretemp', 'cpu_thermal', 'cpu-thermal'])
const zones = new Set(['x86_pkg_temp', 'cpu-thermal', 'cpu_thermal', 'soc-thermal'])

/** Degrees Celsius, from the processor's own chip, else from its thermal zone. */
export async function readCpuTemp (files: ProbeFiles): Promise<number | null> {
  for (const chip of await files.list('/sys/class/hwmon')) {
    const at = `/sys/class/hwmon/${chip}`
    if (!chips.has(await files.text(`${at}/name`) ?? '')) continue
    const degrees = milliDegrees(await files.text(`${at}/temp1_input`))
    if (degrees !== null) return degrees
  }
  for (const zone of await files.list('/sys/class/thermal')) {
    const at = `/sys/class/thermal/${zone}`
    if (!zones.has(await files.text(`${at}/type`) ?? '')) continue
    const degrees = milliDegrees(await files.text(`${at}/temp`))
    if (degrees !== null) return degrees
  }
  return null
}

export function milliDegrees (text: string | null): number | null {
  const value = numberBetween(text, -40_000, 200_000)
  return value === null ? null : value / 1000
}
