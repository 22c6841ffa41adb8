import type { Clock, Device, EngineMetrics, ModelRegistry, SlotService, SvcConfig } from 'svc-gateway/plugin'
import type { z } from 'zod'
import { mapBounded, withinMs } from './record/probe-limits.js'
import { isUp, seconds } from './record/record.js'
import type { SlotCounters, SlotMemory } from './ref.js'
import type { capacitySchema } from './usage-schemas.js'

export interface UsageServices {
  readonly slots: SlotService
  readonly models: ModelRegistry
  readonly clock: Clock
}

type Capacity = z.output<typeof capacitySchema>

const ENGINES_AT_A_TIME = 8
/** An engine that is busy with a long prompt may answer late; its numbers are then left out. */
const ENGINE_MS = 2_000
const MIB = 1024 * 1024

/** Counters of every slot; asks the engines that are up for theirs. */
export async function slotMetrics (services: UsageServices, signal: AbortSignal): Promise<Record<string, SlotCounters>> {
  return await bySlot(services.slots, name => metricsOf(services, name, signal))
}

/** Slots that are deleted while the others are read are left out. */
async function bySlot<T> (slots: SlotService, read: (name: string) => Promise<T>): Promise<Record<string, T>> {
  let [names, present] = [slots.names(), new Set(slots.names())]
  const isThere = (name: string): boolean => {
    // the list is another one as soon as a slot comes or goes
    if (slots.names() !== names) [names, present] = [slots.names(), new Set(slots.names())]
    return present.has(name)
  }
  const rows = await mapBounded(names, ENGINES_AT_A_TIME, async name => isThere(name) ? [[name, await read(name)] as const] : [])
  return Object.fromEntries(rows.flat())
}

async function metricsOf ({ slots, clock }: UsageServices, name: string, signal: AbortSignal): Promise<SlotCounters> {
  const status = slots.status(name)
  const counters = slots.metrics(name)
  const ctx = contextOf(slots, name)
  const [engine, memory] = await Promise.all([
    isUp(status.state) ? askEngine(slots, clock, name, signal) : null,
    slots.memoryMb(name)
  ])
  return {
    tokens_per_sec: counters.tokensPerSec,
    mem_rss_mb: memory,
    uptime_seconds: status.startedAt === null ? null : Math.max(0, (clock.now() - status.startedAt) / 1000),
    requests_processing: engine?.requestsProcessing ?? status.inFlight,
    kv_cache_usage: engine?.kvCacheUsage ?? null,
    ctx,
    ttft_ms: counters.ttftMs === null ? null : Math.round(counters.ttftMs),
    request_count: counters.requestCount,
    token_count: counters.tokenCount,
    last_used_ts: seconds(status.lastUsedAt)
  }
}

/** What every slot holds, and how many slots there may be. */
export async function slotCapacity (services: UsageServices, limits: SvcConfig['slots']): Promise<Capacity> {
  const perSlot = await slotMemory(services)
  return { per_slot: perSlot, slot_budget: { used_slots: services.slots.names().length, max_slots: limits.max_slots } }
}

export async function slotMemory (services: UsageServices): Promise<Record<string, SlotMemory>> {
  const { slots, models } = services
  return await bySlot(slots, async name => {
    const { state, modelId } = slots.status(name)
    const device = slots.device(name)
    const bytes = modelId === null ? 0 : models.get(modelId)?.size_bytes ?? 0
    const memory = await slots.memoryMb(name)
    const sizes = isUp(state) ? share(device, Math.ceil(bytes / MIB), memory) : { vram_mb: 0, ram_mb: 0, mem_mb: 0 }
    return { ...sizes, state, model_id: modelId }
  })
}

/** A GPU slot keeps its model in graphics memory; any other in the host's. Pure. */
export function share (
  device: Device, modelMb: number, memoryMb: number | null
): { vram_mb: number | null, ram_mb: number | null, mem_mb: number | null } {
  const model = modelMb === 0 ? null : modelMb
  return device.startsWith('gpu-')
    ? { vram_mb: model, ram_mb: memoryMb, mem_mb: memoryMb }
    : { vram_mb: 0, ram_mb: memoryMb ?? model, mem_mb: memoryMb }
}

function askEngine (slots: SlotService, clock: Clock, name: string, signal: AbortSignal): Promise<EngineMetrics | null> | null {
  const provider = slots.provider(name)
  const client = slots.client(name)
  if (provider?.metrics === undefined || client === null) return null
  return withinMs(clock, ENGINE_MS, signal, inner => provider.metrics!(client, inner))
}

function contextOf (slots: SlotService, name: string): number | null {
  try {
    return slots.outlook(name).contextSize
  } catch {
    // a slot that cannot be launched has no context; its record says why
    return null
  }
}
