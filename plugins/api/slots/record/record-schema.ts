import {
  deviceClasses, deviceSchema, engineAboutSchema, findingSeverities, slotRoles, slotStateSchema, slotTypeSchema
} from 'svc-gateway/plugin'
import { z } from 'zod'

const epochSeconds = z.number().nullable()
const tokens = z.int()

export const recordMetricsSchema = z.strictObject({
  toks: z.number().meta({ description: 'Tokens per second over the last ten seconds' }),
  ttft: z.int().nullable().meta({ description: 'Milliseconds to the first token of the latest answer' }),
  ctx: tokens.nullable(),
  kv: z.number().nullable().meta({ description: 'Share of the KV cache in use; only `GET /api/slots/metrics` asks engines for it' }),
  mem: z.int().nullable().meta({ description: 'Resident memory in MiB' })
}).meta({ title: 'SlotMetrics' })

const failureSchema = z.strictObject({
  code: z.string(),
  message: z.string(),
  attempts: z.int().meta({ description: 'Failed loads in a row' }),
  kind: z.enum(['heals', 'unfit', 'stays']).meta({ description: '`heals`: retried at growing intervals; `unfit`: detected before anything was started, and checked again by each request; `stays`: not retried until something changes or a verb asks for it' }),
  retry_at: z.number().meta({ description: 'Epoch seconds; requests are refused until then; verbs may try at once' }),
  log_tail: z.array(z.string())
})

const fileProblemSchema = z.strictObject({ path: z.string(), message: z.string(), line: z.int().optional() })

const findingSchema = z.strictObject({
  path: z.string(),
  message: z.string(),
  severity: z.enum(findingSeverities),
  code: z.string().meta({ description: 'Error that requests get because of it' })
})

const metadataSchema = z.strictObject({
  updated_at: z.number().meta({ description: 'When the state was entered, epoch seconds' }),
  message: z.string(),
  backend: z.string(),
  provider: z.string(),
  adopted: z.boolean().meta({ description: 'The engine was found running when the gateway started' }),
  health_ok: z.boolean().nullable(),
  engine: z.string().nullable().meta({ description: 'What is running: an image, or the label of a child process' }),
  generation: z.int().meta({ description: 'Counts launches' }),
  in_flight: z.int(),
  waiting: z.int(),
  started_at: epochSeconds,
  progress: z.number().nullable(),
  failure: failureSchema.optional(),
  config_error: z.string().optional().meta({ description: 'Why the slot cannot be launched as configured' }),
  provider_gone: z.literal(true).optional()
    .meta({ description: 'No active plugin provides the engine: requests are refused with slot.provider_gone, even if one is still running' }),
  pending_model: z.string().optional().meta({ description: 'Model that the slot waits for; the slot is enabled once it is downloaded' }),
  pull_failed: z.string().optional().meta({ description: 'Why the model that the slot waits for could not be downloaded' }),
  file_problems: z.array(fileProblemSchema).optional()
    .meta({ description: 'Problems in the slot file; its last valid content applies' })
}).meta({ title: 'SlotMetadata' })

const replicaSchema = z.strictObject({
  index: z.int().meta({ description: 'From 1' }),
  state: slotStateSchema,
  since: z.number().meta({ description: 'When the state was entered, epoch seconds' }),
  port: z.int().nullable(),
  engine: z.string().nullable().meta({ description: 'Its name in the container engine, the cluster or the process list' }),
  in_flight: z.int(),
  error: z.string().nullable()
}).meta({ title: 'SlotReplica' })

/** A real slot. Times in epoch seconds, memory in MiB, context in tokens. */
export const slotRecordSchema = z.strictObject({
  name: z.string(),
  kind: z.literal('local'),
  type: slotTypeSchema,
  state: slotStateSchema,
  status: slotStateSchema.meta({ description: 'Same as state, but idle if a model is needed and none is loaded' }),
  enabled: z.boolean(),
  default: z.boolean(),
  pinned: z.boolean(),
  role: z.enum(slotRoles).nullable(),
  port: z.int().nullable(),
  ports: z.record(z.string(), z.int()).optional().meta({ description: 'Further ports of the running engine, by name' }),
  device: deviceSchema,
  backend: z.string().meta({ description: 'Short name of the device: rocm, vulkan, cuda, cpu, npu-rt' }),
  declared_backend: z.string().nullable().meta({ description: 'The same for the slot file; null if it has no device' }),
  device_class: z.enum(deviceClasses),
  provider: z.string(),
  model_id: z.string().nullable(),
  models: z.array(z.string()).meta({ description: 'Models of the running engine, the main one first' }),
  model_default: z.string().optional(),
  labels: z.array(z.string()).optional(),
  ctx_max: tokens.optional().meta({ description: 'Context window that the next launch uses' }),
  chat_template: z.string().nullable(),
  n_gpu_layers: z.int(),
  rope_freq_base: z.number(),
  idle_timeout_s: z.int().nullable().meta({ description: 'Value of the slot; null uses the global value' }),
  workers: z.int(),
  replicas: z.array(replicaSchema).optional()
    .meta({ description: 'Engines of a slot that may have several; the other fields describe all of them together' }),
  replicas_ready: z.int().optional().meta({ description: 'Number of engines that take requests' }),
  llamacpp_args: z.union([z.string(), z.array(z.string())]).nullable().meta({ description: 'Mirrors [server] extra_args' }),
  enable_thinking: z.boolean().nullable(),
  mtp: z.boolean().nullable(),
  vision: z.boolean().meta({ description: 'Whether it accepts images; the setting of this name is in its configuration' }),
  npu: z.strictObject({ chat: z.boolean(), asr: z.boolean(), embed: z.boolean() }).optional(),
  served_by: z.string().optional().meta({ description: 'Anchor whose process serves this slot' }),
  npu_modality_active: z.boolean().optional(),
  coresident_group: z.string().optional(),
  container_status: z.enum(['running', 'stopped', 'starting', 'crashed']),
  container_health: z.boolean(),
  runtime: z.enum(['container', 'process']),
  profile: z.string().nullable(),
  image: z.string().nullable(),
  image_status: z.enum(['present', 'pulling', 'missing', 'not-configured']).optional(),
  actual_image: z.string().optional(),
  image_mismatch: z.boolean().optional(),
  resolved_command: z.array(z.string()).nullable().meta({ description: 'Command line, starting with the image; null without an image or profile' }),
  mem_mb: z.int().optional(),
  metrics: recordMetricsSchema,
  metadata: metadataSchema,
  last_used_at: epochSeconds,
  /** Detail only. */
  about: engineAboutSchema.optional(),
  config_drift: z.boolean().optional().meta({ description: 'Detail only: whether the engine runs with an older configuration' }),
  fit_warning: z.string().optional()
    .meta({ description: 'Only in answers to writes: why the model of the slot may not fit the memory of its device' }),
  findings: z.array(findingSchema).optional()
    .meta({ description: 'Only in answers to writes: what `GET /api/status` says about the slot file, such as a model that does not exist' })
}).meta({ title: 'SlotRecord' })
export type SlotRecord = z.output<typeof slotRecordSchema>

/** A configured upstream that no slot has the name of. */
export const upstreamRowSchema = z.strictObject({
  name: z.string(),
  kind: z.enum(['slot', 'remote']),
  state: z.enum(['serving', 'offline']),
  status: z.enum(['serving', 'offline']),
  model: z.string().nullable(),
  backend: z.string(),
  provider: z.string(),
  url: z.string(),
  advertised_models: z.int(),
  last_used_model: z.string().nullable(),
  svc: z.literal(true).optional().meta({ description: 'Whether it is another gateway: with `remote` its slots follow' }),
  remote_error: z.string().optional().meta({ description: 'With `remote`: why its slots are not shown' }),
  _synthetic: z.literal(true),
  _synthetic_reason: z.string(),
  metrics: recordMetricsSchema
}).meta({ title: 'UpstreamRow' })
export type UpstreamRow = z.output<typeof upstreamRowSchema>

/** A slot that is left out because its file cannot be read. */
export const unreadRowSchema = z.strictObject({
  name: z.string(),
  kind: z.literal('unread'),
  state: z.literal('error'),
  status: z.literal('error'),
  port: z.int().nullable(),
  container_status: z.enum(['running', 'stopped']).meta({ description: 'Whether an engine of an earlier run is kept until the file can be read' }),
  actual_image: z.string().optional(),
  _synthetic: z.literal(true),
  _synthetic_reason: z.string(),
  metrics: recordMetricsSchema,
  metadata: z.strictObject({ message: z.string(), file_problems: z.array(fileProblemSchema) })
}).meta({ title: 'UnreadSlotRow' })
export type UnreadRow = z.output<typeof unreadRowSchema>

/** A slot of another gateway, as that one tells. */
export const remoteSlotRowSchema = z.strictObject({
  name: z.string().meta({ description: '`<upstream>/<slot>`: the `model` for requests' }),
  kind: z.literal('remote-slot'),
  upstream: z.string(),
  slot: z.string(),
  url: z.string().meta({ description: 'Of the gateway that has it' }),
  type: z.string().nullable(),
  state: z.string(),
  status: z.string(),
  enabled: z.boolean(),
  model_id: z.string().nullable(),
  model_default: z.string().nullable(),
  device: z.string().nullable(),
  backend: z.string(),
  provider: z.string(),
  ctx_max: tokens.nullable(),
  capabilities: z.array(z.string()).nullable().meta({ description: 'Its capabilities; null if that gateway does not report them' }),
  _synthetic: z.literal(true),
  _synthetic_reason: z.string(),
  metrics: recordMetricsSchema
}).meta({ title: 'RemoteSlotRow' })
export type RemoteSlotRow = z.output<typeof remoteSlotRowSchema>

/** Members of a list: of this gateway, and with `remote` of those behind it. */
export const slotListRowSchema = z.union([slotRecordSchema, upstreamRowSchema, unreadRowSchema, remoteSlotRowSchema])

export const slotRowSchema = z.union([slotRecordSchema, upstreamRowSchema, unreadRowSchema])
export type SlotRow = z.output<typeof slotRowSchema>
