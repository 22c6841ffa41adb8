import { pause } from '../async/waiting.js'
import type { Clock, HardwareInfo, HardwareReading } from '../contract/index.js'
import { cpuUtil, readCpuTemp, readCpuTimes, type CpuTimes } from './cpu-load.js'
import { readGpus } from './gpu-reading.js'
import type { NvidiaReader } from './nvidia-smi.js'
import { createProbeFiles, type ProbeFiles } from './probe-files.js'
import { parseMemInfo } from './proc-text.js'

export interface HardwareMonitorOptions {
  readonly clock: Clock
  readonly root: string
  readonly info: () => HardwareInfo
  readonly nvidia: NvidiaReader
}

/** A reading this young is good enough for every caller. */
const FRESH_MS = 5_000
/** One this old is better than to wait; an older one would be a lie. */
const SHOWN_MS = 30_000
/** The load is a difference: with nothing to compare to, this long is waited for the second look. */
const FIRST_LOOK_MS = 100
const READ_TIMEOUT_MS = 2_000

/** Takes readings of the machine for its callers (contract `HardwareService.read`), one at a time. */
export class HardwareMonitor {
  readonly #options: HardwareMonitorOptions
  readonly #closing = new AbortController()
  #latest: HardwareReading | null = null
  #cpu: CpuTimes | null = null
  #takenAt = -Infinity
  #taking: Promise<HardwareReading> | null = null

  constructor (options: HardwareMonitorOptions) {
    this.#options = options
  }

  read (): Promise<HardwareReading> {
    const age = this.#options.clock.monotonic() - this.#takenAt
    if (this.#latest === null || age >= SHOWN_MS) return this.#take()
    if (age >= FRESH_MS && !this.#closing.signal.aborted) void this.#take()
    return Promise.resolve(this.#latest)
  }

  /** Ends the reading that runs, and what it started. */
  async close (): Promise<void> {
    this.#closing.abort()
    await this.#taking
  }

  #take (): Promise<HardwareReading> {
    return this.#taking ??= this.#measure().finally(() => { this.#taking = null })
  }

  async #measure (): Promise<HardwareReading> {
    const { clock, root, info, nvidia } = this.#options
    const { gpus } = info()
    const files = createProbeFiles(root, clock, READ_TIMEOUT_MS)
    try {
      const asksNvidia = gpus.some(gpu => gpu.vendor === 'nvidia')
      const [load, temp, memory, told] = await Promise.all([
        this.#cpuLoad(files), readCpuTemp(files), files.text('/proc/meminfo'), asksNvidia ? nvidia(this.#closing.signal) : null
      ])
      const { total, available } = parseMemInfo(memory ?? '')
      this.#latest = {
        at: clock.now(),
        cpu_util: load,
        cpu_temp_c: temp,
        ram_total_mb: total === 0 ? null : total,
        ram_available_mb: total === 0 ? null : available,
        gpus: await readGpus(files, gpus, told ?? [])
      }
      this.#takenAt = clock.monotonic()
      return this.#latest
    } finally {
      files.close()
    }
  }

  async #cpuLoad (files: ProbeFiles): Promise<number | null> {
    const isOld = this.#options.clock.monotonic() - this.#takenAt >= SHOWN_MS
    const before = isOld ? await this.#firstLook(files) : this.#cpu
    const after = await readCpuTimes(files)
    this.#cpu = after
    return cpuUtil(before, after)
  }

  async #firstLook (files: ProbeFiles): Promise<CpuTimes | null> {
    const times = await readCpuTimes(files)
    if (times !== null) await pause(this.#options.clock, FIRST_LOOK_MS, this.#closing.signal)
    return times
  }
}
