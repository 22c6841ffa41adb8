import type { Device } from '../schemas/enums.js'
import type { GpuInfo, HardwareInfo } from '../schemas/hardware.js'

/** One GPU at one moment. Null is what its driver does not tell. */
export interface GpuReading extends Pick<GpuInfo, 'vendor' | 'index' | 'name' | 'pci_id'> {
  /** 0 to 1. */
  readonly util: number | null
  /** The driver is told to keep the clocks high: `util` then says little. */
  readonly util_is_forced_high: boolean
  readonly vram_used_mb: number | null
  readonly vram_total_mb: number | null
  /** Host memory that is mapped for the GPU. */
  readonly gtt_used_mb: number | null
  readonly gtt_total_mb: number | null
  readonly clock_mhz: number | null
  readonly temp_c: number | null
  /** On a processor with graphics the power of both. */
  readonly power_w: number | null
}

/** The machine at one moment. Sizes in MiB; null is unknown. */
export interface HardwareReading {
  /** Epoch milliseconds. */
  readonly at: number
  /** Share of all processors in use since the reading before, 0 to 1. */
  readonly cpu_util: number | null
  readonly cpu_temp_c: number | null
  readonly ram_total_mb: number | null
  readonly ram_available_mb: number | null
  /** In the order of the probe. */
  readonly gpus: readonly GpuReading[]
}

export interface HardwareService {
  /** The cached probe. */
  readonly info: HardwareInfo
  /** Probes again, keeps the result in hardware.json. */
  probe (): Promise<HardwareInfo>
  /** The device that a slot without one gets. */
  readonly defaultDevice: Device
  /**
   * What the machine does now. A reading of the last 5 seconds is given again; one of the last 30 is given at once while
   * the next is taken; with none of these the caller waits for it. Takes one reading at a time, and none while no one
   * asks. Never rejects.
   */
  read (): Promise<HardwareReading>
}
