import {
  mainGpusOf, type GpuReading, type HardwareInfo, type HardwareReading, type ModelRegistry, type SlotMetrics, type SlotService
} from 'svc-gateway/plugin'
import type { SlotMemory } from '../slots/ref.js'
import type { HardwareStats } from './schemas.js'

const MIB = 1024 * 1024

export interface HardwareFacts {
  readonly info: HardwareInfo
  readonly reading: HardwareReading
  readonly perSlot: Readonly<Record<string, SlotMemory>>
  readonly perUpstream: Readonly<Record<string, SlotMetrics>>
  readonly upstreamNames: readonly string[]
  /** MiB of the models on the NPU; null when the registry does not know one of them. */
  readonly npuModelMb: number | null
  readonly host: HardwareStats['host']
}

/** The answer of `/api/stats/hardware`. Pure. */
export function hardwareStats (facts: HardwareFacts): HardwareStats {
  const { info, reading, perSlot, perUpstream, upstreamNames, npuModelMb, host } = facts
  const { ram_total_mb: total, ram_available_mb: available } = reading
  const used = total === null || available === null ? null : Math.max(0, total - available)
  const gpu = mainReading(info, reading)
  return {
    sampled_at: new Date(reading.at).toISOString(),
    ram_used_mb: used,
    ram_used_gb: gib(used),
    ram_available_gb: gib(available),
    gtt_used_mb: sum(reading.gpus.map(({ gtt_used_mb: mb }) => mb)),
    vram_used_mb: sum(reading.gpus.map(({ vram_used_mb: mb }) => mb)),
    gpu_util: gpu?.util ?? null,
    util_is_forced_high: gpu?.util_is_forced_high ?? false,
    gpu_vram_used_mb: gpu?.vram_used_mb ?? null,
    gpu_vram_total_mb: gpu?.vram_total_mb ?? null,
    gpu_clock_mhz: gpu?.clock_mhz ?? null,
    gpu_temp_c: gpu?.temp_c ?? null,
    cpu_util: reading.cpu_util,
    ...(info.npu.present ? { npu_util: null, npu_status: { ok: info.npu.accel_path !== '', model_mb: npuModelMb } } : {}),
    gpus: reading.gpus.map(each => ({ ...each })),
    host,
    per_upstream: Object.fromEntries(Object.entries(perUpstream).map(([name, counters]) => [name, countersOf(counters)])),
    upstream_names: [...upstreamNames],
    per_slot: perSlot
  }
}

/** What the busiest of the GPUs does that engines would take; undefined without one. Pure. */
export function mainReading (info: HardwareInfo, { gpus }: HardwareReading): GpuReading | undefined {
  const main = mainGpusOf(info.gpus).map(gpu => gpus.find(reading => reading.pci_id === gpu.pci_id))
  return main.filter(reading => reading !== undefined).sort((a, b) => (b.util ?? 0) - (a.util ?? 0))[0]
}

export function npuModelMb (slots: SlotService, models: ModelRegistry): number | null {
  const loaded = slots.names().filter(name => slots.device(name) === 'npu' && slots.status(name).engineId !== null)
  const sizes = loaded.map(name => {
    const { modelId } = slots.status(name)
    const bytes = modelId === null ? 0 : models.get(modelId)?.size_bytes ?? 0
    return bytes === 0 ? null : Math.ceil(bytes / MIB)
  })
  return sizes.includes(null) ? null : sum(sizes) ?? 0
}

function countersOf ({ tokensPerSec, ttftMs, requestCount, tokenCount }: SlotMetrics): HardwareStats['per_upstream'][string] {
  return {
    tokens_per_sec: tokensPerSec,
    ttft_ms: ttftMs === null ? null : Math.round(ttftMs),
    request_count: requestCount,
    token_count: tokenCount
  }
}

/** Of what is known; null when nothing is. */
function sum (values: ReadonlyArray<number | null>): number | null {
  const known = values.filter(value => value !== null)
  return known.length === 0 ? null : known.reduce((total, value) => total + value, 0)
}

function gib (mib: number | null): number | null {
  return mib === null ? null : Math.round(mib / 1024 * 100) / 100
}
