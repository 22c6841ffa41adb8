import { execFile } from 'node:child_process'
import type { Clock } from '../contract/index.js'

/** One GPU as NVIDIA's own tool sees it. Null is what it does not tell: `[N/A]` on parts without memory of their own. */
export interface NvidiaGpu {
  /** As sysfs spells it: `0000:01:00.0`. */
  readonly pciId: string
  readonly name: string
  readonly memoryTotalMb: number | null
  readonly memoryUsedMb: number | null
  /** 0 to 1. */
  readonly util: number | null
  readonly tempC: number | null
  readonly powerW: number | null
  readonly clockMhz: number | null
}

/** Null where the tool is missing, fails or takes too long. Never rejects. */
export type NvidiaReader = (signal: AbortSignal) => Promise<readonly NvidiaGpu[] | null>

const FIELDS = [
  'pci.bus_id', 'memory.total', 'memory.used', 'utilization.gpu', 'temperature.gpu', 'power.draw', 'clocks.current.graphics', 'name'
]
const TIME_LIMIT_MS = 3_000
const LARGEST_ANSWER_BYTES = 256 * 1024
/** Where WSL keeps the tool; the PATH of a service does not have it. */
const WSL_FOLDER = '/usr/lib/wsl/lib'

/** NVIDIA's driver shows memory and load to its own library alone, so its tool is asked: a child process for each reading. */
export function createNvidiaReader (env: Readonly<Record<string, string | undefined>>, clock: Clock): NvidiaReader {
  const path = [env.PATH, WSL_FOLDER].filter(part => part !== undefined && part !== '').join(':')
  return async signal => {
    if (signal.aborted) return null
    const limit = new AbortController()
    const timer = clock.setTimer(TIME_LIMIT_MS, () => limit.abort())
    const end = (): void => limit.abort()
    signal.addEventListener('abort', end, { once: true })
    try {
      return await query(path, limit.signal)
    } finally {
      timer.cancel()
      signal.removeEventListener('abort', end)
    }
  }
}

function query (path: string, signal: AbortSignal): Promise<readonly NvidiaGpu[] | null> {
  const args = [`--query-gpu=${FIELDS.join(',')}`, '--format=csv,noheader,nounits']
  const options = { env: { PATH: path, LC_ALL: 'C' }, signal, killSignal: 'SIGKILL', maxBuffer: LARGEST_ANSWER_BYTES, windowsHide: true } as const
  return new Promise(resolve => {
    execFile('nvidia-smi', args, options, (error, stdout) => resolve(error === null ? parseNvidiaGpus(stdout) : null))
  })
}

/** Lines that are no GPU are left out. Pure. */
export function parseNvidiaGpus (text: string): readonly NvidiaGpu[] {
  return text.split('\n').flatMap(line => {
    // the name comes last: nothing keeps commas out of it
    const [bus = '', total, used, util, temp, power, clock, ...name] = line.split(',').map(cell => cell.trim())
    const pciId = pciIdOf(bus)
    if (pciId === null || name.length === 0) return []
    const percent = number(util)
    return [{
      pciId,
      name: name.join(', '),
      memoryTotalMb: number(total),
      memoryUsedMb: number(used),
      util: percent === null || percent > 100 ? null : percent / 100,
      tempC: number(temp),
      powerW: number(power),
      clockMhz: number(clock)
    }]
  })
}

/** The tool writes eight digits of domain, sysfs four. */
function pciIdOf (bus: string): string | null {
  const match = /^([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])$/i.exec(bus)
  return match === null ? null : `${match[1]!.slice(-4)}:${match[2]!}`.toLowerCase()
}

function number (cell: string | undefined): number | null {
  return cell !== undefined && /^\d+(\.\d+)?$/.test(cell) ? Number(cell) : null
}
