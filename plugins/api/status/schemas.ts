import { devices, findingSeverities, slotStateSchema, slotTypeSchema } from 'svc-gateway/plugin'
import { z } from 'zod'

export const overallStatuses = ['ok', 'degraded'] as const
const overall = z.enum(overallStatuses)
  .meta({ description: 'degraded: a plugin failed, a configuration file has problems, an enabled slot is in error, or audit rows are lost' })

const identity = {
  name: z.string(),
  version: z.string(),
  status: overall,
  degraded_by: z.array(z.string()).meta({ description: 'What is unhealthy: `plugin <name>`, `slot <name>`, `file <name>`, `audit trail`' })
}

export const healthSchema = z.strictObject(identity)

const slotSchema = z.strictObject({
  name: z.string(),
  state: slotStateSchema,
  model: z.string().nullable(),
  port: z.int().nullable(),
  type: slotTypeSchema,
  enabled: z.boolean(),
  message: z.string().optional()
})

const runtimeSchema = z.strictObject({
  driver: z.string().meta({ description: 'docker, podman, process, or the name of a driver from a plugin' }),
  version: z.string(),
  endpoint: z.string().nullable(),
  reason: z.string().meta({ description: 'Why this driver was chosen' })
})

const runtimeViewSchema = z.strictObject({
  name: z.string().meta({ description: 'Value for `runtime` of a slot' }),
  form: z.enum(['container', 'process']),
  default: z.boolean().meta({ description: 'Whether it is the default for slots' }),
  info: runtimeSchema.nullable().meta({ description: 'Null while it is not open' }),
  problem: z.string().nullable().meta({ description: 'Why it is not open; null if it is open or was not needed yet' })
})

const diagnosticSchema = z.strictObject({
  file: z.string(),
  path: z.string(),
  message: z.string(),
  line: z.int().optional(),
  severity: z.enum(findingSeverities),
  code: z.string().meta({ description: 'Error that requests get because of it' })
})

export const probeSchema = z.strictObject({ status: z.literal('ok') })

/** `GET /api/status`. */
export const statusSchema = z.strictObject({
  ...identity,
  hardware: z.strictObject({
    ram_mb: z.int(),
    gpus: z.array(z.string()).meta({ description: 'Their names' }),
    npu: z.boolean(),
    default_device: z.enum(devices).meta({ description: 'Default of a slot' })
  }).nullable().meta({ description: 'Summary, details are in GET /api/hardware; null before the first probe' }),
  slots: z.array(slotSchema),
  upstreams: z.array(z.strictObject({ name: z.string(), kind: z.enum(['slot', 'remote']), url: z.string() })),
  memory_enabled: z.boolean(),
  memory_degraded: z.boolean().nullable().meta({ description: 'Null while it is off' }),
  runtime: runtimeSchema,
  runtimes: z.array(runtimeViewSchema).meta({ description: 'Every driver, the default first' }),
  plugins: z.strictObject({ active: z.int(), failed: z.int(), skipped: z.int(), disabled: z.int() }),
  diagnostics: z.array(diagnosticSchema).meta({ description: 'Problems in and between the configuration files, as in `svc config validate`' }),
  instance: z.string().meta({ description: 'Id of this home' }),
  home: z.string().nullable().meta({ description: 'Folder of etc/svc and var/lib/svc; null for those of the system' }),
  started_at: z.string().meta({ description: 'ISO 8601 UTC' }),
  uptime_s: z.int()
})
export type Status = z.output<typeof statusSchema>

const diskSchema = z.strictObject({
  ok: z.boolean(),
  free_mb: z.int().nullable().meta({ description: 'MiB; null if unknown' }),
  floor_mb: z.int().meta({ description: 'Threshold for ok' }),
  path: z.string()
})

const activityCheckSchema = z.strictObject({
  ok: z.boolean(),
  since: z.string().nullable().meta({ description: 'When the first audit row was lost, ISO 8601 UTC; null while rows are written' }),
  lost: z.int().meta({ description: 'Rows that were lost since then' }),
  reason: z.string().nullable()
})

/** `GET /api/health/system`. */
export const systemHealthSchema = z.strictObject({
  status: z.enum(overallStatuses),
  checks: z.strictObject({
    disk_state: diskSchema,
    disk_config: diskSchema,
    slot_manager: z.strictObject({ ok: z.boolean(), slots: z.int(), errored: z.int().meta({ description: 'Slots in `error`' }) }),
    event_bus: z.strictObject({ ok: z.boolean() }),
    activity: activityCheckSchema,
    plugins: z.strictObject({ ok: z.boolean(), failed: z.array(z.string()).meta({ description: 'Plugins that failed, or depend on one that failed' }) }),
    mcp_mount: z.strictObject({ ok: z.boolean(), servers: z.array(z.string()).meta({ description: 'Tool servers that are active' }) })
  })
})
export type SystemHealth = z.output<typeof systemHealthSchema>

/** `GET /api/features`. */
export const featuresSchema = z.strictObject({
  comfyui_switchover: z.boolean(),
  memory: z.boolean(),
  mcp_supervisor: z.literal(false),
  memory_engine: z.string().nullable().meta({ description: 'Null without memory' }),
  npu: z.boolean()
})
export type Features = z.output<typeof featuresSchema>
