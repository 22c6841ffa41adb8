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

export async function readHardware (services: StatsServices): Promise<HardwareStats> {
  const { hardware, models, slots, throughput, upstreams, usage } = services
  const [reading, perSlot, host] = await Promise.all([hardware.read(), usage.memory(), services.host.read(hardware.info)])
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

/** A slot that came or went while it was read is left out. */
export async function readSlots (
  { usage }: StatsServices, signal: AbortSignal
): Promise<Record<string, SlotCounters & SlotMemory>> {
  const [counters, memory] = await Promise.all([usage.counters(signal), usage.memory()])
  const names = Object.keys(counters).filter(name => Object.hasOwn(memory, name))
  return Object.fromEntries(names.map(name => [name, { ...counters[name]!, ...memory[name]! }]))
}
