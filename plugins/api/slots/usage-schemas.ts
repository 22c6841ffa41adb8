import { slotStateSchema } from 'svc-gateway/plugin'
import { z } from 'zod'

/** `GET /api/slots/metrics`: by slot name. */
export const metricsSchema = z.record(z.string(), z.strictObject({
  tokens_per_sec: z.number(),
  mem_rss_mb: z.int().nullable(),
  uptime_seconds: z.number().nullable().meta({ description: 'Since the engine serves; null without one' }),
  requests_processing: z.int().meta({ description: 'What the engine says, else what the gateway has in flight' }),
  kv_cache_usage: z.number().nullable().meta({ description: 'Share in use, as far as the engine tells' }),
  ctx: z.int().nullable(),
  ttft_ms: z.int().nullable().meta({ description: 'Of the latest answer' }),
  request_count: z.int(),
  token_count: z.int(),
  last_used_ts: z.number().nullable().meta({ description: 'Epoch seconds' })
}))

/** `GET /api/slots/capacity`. Sizes in MiB; null is unknown, 0 is nothing. */
export const capacitySchema = z.strictObject({
  per_slot: z.record(z.string(), z.strictObject({
    vram_mb: z.int().nullable().meta({ description: 'Estimated from the size of the model file' }),
    ram_mb: z.int().nullable(),
    mem_mb: z.int().nullable().meta({ description: 'What the engine\'s container holds' }),
    state: slotStateSchema,
    model_id: z.string().nullable()
  })),
  slot_budget: z.strictObject({
    used_slots: z.int(),
    max_slots: z.int().meta({ description: '0 is unlimited' })
  })
})
