import { join } from 'node:path'
import { hardwareSchema, messageOf, type Clock, type HardwareInfo, type HardwareService, type Logger, type Paths } from '../contract/index.js'
import { writeFileAtomic } from '../config/files/atomic-file.js'
import { configFiles } from '../config/parts/config-parts.js'
import { SerialQueue } from '../async/serial-queue.js'
import { defaultDeviceOf } from './default-device.js'
import { HardwareMonitor } from './hardware-monitor.js'
import type { NvidiaReader } from './nvidia-smi.js'
import { probeHardware } from './probe.js'

export interface HardwareServiceOptions {
  readonly paths: Paths
  readonly clock: Clock
  readonly log: Logger
  /** What hardware.json says; the schema's defaults when there is none. */
  readonly cached: HardwareInfo
  readonly root?: string
  /** Default is none. */
  readonly nvidia?: NvidiaReader
  /** The model store, for its free space. */
  readonly diskPath: string
  /** Called after hardware.json was written, so that the configuration reads it again. */
  readonly onWritten?: () => Promise<unknown>
}

/** The probe and its cache in hardware.json. */
export interface CachingHardwareService extends HardwareService {
  /** Probes when there is no cached probe yet. */
  ensureProbed (): Promise<HardwareInfo>
  /** Ends the reading that runs. */
  close (): Promise<void>
}

/** A home that cannot be written keeps its probe in memory: hardware is known either way. */
export function createHardwareService (options: HardwareServiceOptions): CachingHardwareService {
  const { paths, clock, log, root = '/', nvidia = () => Promise.resolve(null), diskPath, onWritten } = options
  let info = options.cached
  const queue = new SerialQueue()
  const monitor = new HardwareMonitor({ clock, root, nvidia, info: () => info })

  const probe = (): Promise<HardwareInfo> => queue.run(async () => {
    const probed = await probeHardware({ root, clock, diskPath, nvidia })
    // what the operator keeps in the file besides the probe, such as overrides of slots, stays
    info = Object.freeze({ ...extraKeys(info), ...probed })
    try {
      await writeFileAtomic(join(paths.etc, configFiles.hardware), JSON.stringify(info, null, 2) + '\n')
      await onWritten?.()
    } catch (error) {
      log.warn({ err: error }, `hardware.json could not be written: ${messageOf(error)}; the probe results are kept in memory`)
    }
    return info
  })

  return {
    get info () { return info },
    get defaultDevice () { return defaultDeviceOf(info) },
    probe,
    read: () => monitor.read(),
    close: () => monitor.close(),
    ensureProbed: async () => info.probed_at === '' ? await probe() : info
  }
}

/** Keys that no probe writes. */
function extraKeys (info: HardwareInfo): Record<string, unknown> {
  return Object.fromEntries(Object.entries(info).filter(([key]) => !Object.hasOwn(hardwareSchema.shape, key)))
}
