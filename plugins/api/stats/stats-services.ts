import type {
  GatewayInfo, HardwareService, ModelRegistry, RequestService, SlotService, ThroughputService, UpstreamService
} from 'svc-gateway/plugin'
import type { SlotCounters, SlotMemory, SlotUsage } from '../slots/ref.js'
import { hardwareStats, npuModelMb } from './hardware-stats.js'
import type { HardwareStats } from './schemas.js'
import type { ShownHost } from './virtualization-host.js'

export interface StatsServices {
  readonly hardware: HardwareService
  readonly info: GatewayInfo
  readonly models: ModelRegistry
  readonly requests: RequestService
  readonly slots: SlotService
  readonly throughput: ThroughputService
  readonly upstreams: UpstreamService
  readonly usage: SlotUsage
  readonly host: ShownHost
}

/** @param memory what the slots hold, where that was read already */
export async function readHardware (services: StatsServices, memory = services.usage.memory()): Promise<HardwareStats> {
  const { hardware, models, slots, throughput, upstreams } = services
  const [reading, perSlot, host] = await Promise.all([hardware.read(), memory, services.host.read(hardware.info)])
  return hardwareStats({
    info: hardware.info,
    reading,
    perSlot,
    upstreamNames: upstreams.list().map(({ config }) => config.name),
    perUpstream: throughput.upstreams(),
    npuModelMb: npuModelMb(slots, models),
    host
  })
}

/** A slot that came or went while it was read is left out. @param held as above */
export async function readSlots (
  { usage }: StatsServices, signal: AbortSignal, held = usage.memory()
): Promise<Record<string, SlotCounters & SlotMemory>> {
  const [counters, memory] = await Promise.all([usage.counters(signal), held])
  const slots: Record<string, SlotCounters & SlotMemory> = {}
  for (const [name, counted] of Object.entries(counters)) {
    const own = memory[name]
    if (own !== undefined) slots[name] = Object.assign({}, counted, own)
  }
  return slots
}
