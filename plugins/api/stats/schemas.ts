import { gpuVendors } from 'svc-gateway/plugin'
import { z } from 'zod'
import { slotCountersSchema, slotMemorySchema } from '../slots/ref.js'
import { hostFailedSchema, slimHostSchema } from './ref.js'

const mib = z.int().nullable().meta({ description: 'MiB; null if unknown' })
const gib = z.number().nullable().meta({ description: 'GiB' })
const share = z.number().min(0).max(1).nullable().meta({ description: '0 to 1' })
const degrees = z.number().nullable().meta({ description: 'Degrees Celsius' })
const megahertz = z.number().nullable().meta({ description: 'MHz' })
const watts = z.number().nullable().meta({ description: 'W' })

const gpuSchema = z.strictObject({
  vendor: z.enum(gpuVendors),
  index: z.int().meta({ description: 'Counts per vendor' }),
  name: z.string(),
  pci_id: z.string(),
  util: share,
  util_is_forced_high: z.boolean().meta({ description: 'Whether the driver always keeps the clocks high, so that `util` means little' }),
  vram_used_mb: mib,
  vram_total_mb: mib,
  gtt_used_mb: mib,
  gtt_total_mb: mib,
  clock_mhz: megahertz,
  temp_c: degrees,
  power_w: watts
})

const upstreamCountersSchema = z.strictObject({
  tokens_per_sec: z.number().meta({ description: 'Of the last ten seconds' }),
  ttft_ms: z.int().nullable().meta({ description: 'Of the latest streamed answer' }),
  request_count: z.int(),
  token_count: z.int()
})

const unknownHostSchema = z.strictObject({
  configured: z.literal(false),
  detected: z.boolean(),
  detection: z.enum(['detected', 'uncertain']).optional(),
  hint: z.string().optional()
})
export type UnknownHost = z.output<typeof unknownHostSchema>

/** `GET /api/stats/hardware`. `gpu_*` speak of one GPU, the one that engines would take. */
export const hardwareStatsSchema = z.strictObject({
  sampled_at: z.string().meta({ description: 'ISO 8601 UTC; at most 30 seconds ago' }),
  ram_used_mb: mib,
  ram_used_gb: gib,
  ram_available_gb: gib,
  gtt_used_mb: mib.meta({ description: 'MiB of host memory mapped for GPUs, all of them together' }),
  vram_used_mb: mib.meta({ description: 'MiB in use on all GPUs together' }),
  gpu_util: share,
  util_is_forced_high: z.boolean(),
  gpu_vram_used_mb: mib,
  gpu_vram_total_mb: mib,
  gpu_clock_mhz: megahertz,
  gpu_temp_c: degrees,
  cpu_util: share,
  npu_util: z.null().optional().meta({ description: 'Only with an NPU; null, as its driver does not report it' }),
  npu_status: z.strictObject({
    ok: z.boolean().meta({ description: 'Whether its device node exists' }),
    model_mb: z.int().nullable().meta({ description: 'MiB of the models that are loaded there; null if unknown' })
  }).optional(),
  gpus: z.array(gpuSchema),
  host: z.union([unknownHostSchema, hostFailedSchema, slimHostSchema])
    .meta({ description: 'The virtualization host of this machine: its last report, else what the guest can detect' }),
  per_upstream: z.record(z.string(), upstreamCountersSchema),
  upstream_names: z.array(z.string()),
  per_slot: z.record(z.string(), slotMemorySchema)
}).meta({ title: 'HardwareStats' })
export type HardwareStats = z.output<typeof hardwareStatsSchema>

/** `GET /api/stats/slots`: by slot name. */
export const slotStatsSchema = z.record(z.string(), z.strictObject({ ...slotCountersSchema.shape, ...slotMemorySchema.shape }))

/** `GET /api/stats/power`. */
export const powerSchema = z.strictObject({
  gpu_power_w: watts.meta({ description: 'W; on a processor with graphics the power of both' }),
  gpu_temp_c: degrees,
  gpu_sclk_mhz: megahertz,
  cpu_temp_c: degrees
})

export const historyQuerySchema = z.strictObject({
  buckets: z.coerce.number().int().min(1).max(120).default(20)
    .meta({ description: 'Number of intervals; none is shorter than a second' }),
  window_s: z.coerce.number().int().min(5).max(3600).default(100).meta({ description: 'Seconds to look back' })
})

/** `GET /api/stats/throughput/history`. */
export const historySchema = z.strictObject({
  window_s: z.int(),
  bucket_s: z.int().meta({ description: 'Length of an interval in seconds' }),
  samples: z.array(z.strictObject({
    ts: z.number().meta({ description: 'Epoch seconds of the end of the interval' }),
    total_tps: z.number().meta({ description: 'Tokens per second of slots and upstreams' }),
    serving_slots: z.int()
  })).meta({ description: 'Oldest first, without empty intervals' }),
  per_slot: z.record(z.string(), z.array(z.number())).meta({ description: 'Tokens per second, one number for each sample' }),
  per_upstream: z.record(z.string(), z.array(z.number()))
})

export const requestsQuerySchema = z.strictObject({
  window_s: z.coerce.number().int().min(1).max(3600).default(60).meta({ description: 'Seconds to look back' })
})

/** `GET /api/stats/requests`: `/v1` requests of clients that ended in the window. */
export const requestsSchema = z.strictObject({
  window_s: z.int(),
  requests: z.int(),
  req_per_min: z.number(),
  p50_ms: z.number().nullable().meta({ description: 'From the first byte in to the last byte out; null without a request' }),
  p95_ms: z.number().nullable(),
  endpoints: z.array(z.strictObject({ path: z.string(), count: z.int() })).meta({ description: 'Most used first' }),
  errors: z.int().meta({ description: 'Refused, failed or aborted; a client that leaves is not an error' })
})

/** `GET /api/metrics`. */
export const metricsSchema = z.strictObject({
  slots: slotStatsSchema,
  hardware: hardwareStatsSchema,
  dispatcher: z.strictObject({
    in_flight: z.int().meta({ description: 'Requests that are not answered in full' }),
    ...requestsSchema.shape
  })
})
