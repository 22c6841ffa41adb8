import { createServiceRef, slotStateSchema, type SseEvent } from 'svc-gateway/plugin'
import { z } from 'zod'

/** What a slot has done and does. */
export const slotCountersSchema = z.strictObject({
  tokens_per_sec: z.number(),
  mem_rss_mb: z.int().nullable(),
  uptime_seconds: z.number().nullable().meta({ description: 'Seconds since the engine became ready; null if none is running' }),
  requests_processing: z.int().meta({ description: 'As reported by the engine, else the requests in flight at the gateway' }),
  kv_cache_usage: z.number().nullable().meta({ description: 'Share in use, if the engine reports it' }),
  ctx: z.int().nullable(),
  ttft_ms: z.int().nullable().meta({ description: 'Of the latest answer' }),
  request_count: z.int(),
  token_count: z.int(),
  last_used_ts: z.number().nullable().meta({ description: 'Epoch seconds' })
}).meta({ title: 'SlotCounters' })

/** What a slot holds. Sizes in MiB; null is unknown, 0 is nothing. */
export const slotMemorySchema = z.strictObject({
  vram_mb: z.int().nullable().meta({ description: 'Estimated from the size of the model file' }),
  ram_mb: z.int().nullable(),
  mem_mb: z.int().nullable().meta({ description: 'What the engine\'s container holds' }),
  state: slotStateSchema,
  model_id: z.string().nullable()
}).meta({ title: 'SlotMemory' })

export type SlotCounters = z.output<typeof slotCountersSchema>
export type SlotMemory = z.output<typeof slotMemorySchema>

/** Numbers of all slots for other groups, by name. */
export interface SlotUsage {
  /** Asks the engines that are up, each for two seconds at most. */
  counters (signal: AbortSignal): Promise<Readonly<Record<string, SlotCounters>>>
  memory (): Promise<Readonly<Record<string, SlotMemory>>>
}

export const slotUsageRef = createServiceRef<SlotUsage>('slots.usage')

export interface LogTail {
  readonly lines: readonly string[]
  /** Why there is nothing to see, and what to do. */
  readonly hint?: string
}

export interface TailOptions {
  /** Lines that are wanted. */
  readonly lines: number
  /** Leave out what the gateway's own polling writes. */
  readonly quiet: boolean
}

/** What engines write, without what could be a secret, for other groups. Names that do not exist throw `slot.not_found`. */
export interface SlotLogs {
  /** A log that cannot be read is told as a hint. */
  tail (name: string, options: TailOptions, signal: AbortSignal): Promise<LogTail>
  /** Lines as they come, through restarts; `degraded` events tell what cannot be read. Ends when the slot is deleted. */
  follow (name: string, options: TailOptions, signal: AbortSignal): AsyncIterable<SseEvent>
}

export const slotLogsRef = createServiceRef<SlotLogs>('slots.logs')
