import type { Device } from '../schemas/enums.js'
import type { HardwareInfo } from '../schemas/hardware.js'

export interface HardwareService {
  /** The cached probe. */
  readonly info: HardwareInfo
  /** Probes again, keeps the result in hardware.json. */
  probe (): Promise<HardwareInfo>
  /** The device that a slot without one gets. */
  readonly defaultDevice: Device
}
