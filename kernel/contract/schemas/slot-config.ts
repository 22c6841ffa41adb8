import { z } from 'zod'
import { deviceSchema, slotRoles, slotTypeSchema } from './enums.js'
import { freeTableSchema, MAX_LIST_ENTRIES } from './free-table.js'
import { envSchema, nameSchema, PLUGIN_NAME_PATTERN, runtimeNameSchema } from './names.js'

/**
 * Highest port that a slot file may name; the pool may lie anywhere. Below 1024 needs privileges that
 * engines do not have.
 */
export const MAX_SLOT_PORT = 8200
export const MIN_CONTEXT_SIZE = 128
/** More than any model takes; engines count tokens in 32 bits. */
export const MAX_CONTEXT_SIZE = 1_000_000_000

export const speechFormats = ['mp3', 'wav', 'opus', 'flac', 'pcm'] as const

/** More than one gateway has the ports or a person the patience for. */
export const MAX_REPLICAS = 64

const replicaCountSchema = z.int().max(MAX_REPLICAS)

const extraArgsSchema = z.union([z.string(), z.array(z.string()).max(MAX_LIST_ENTRIES)], { error: 'must be a string or a list of strings' })

export const slotModelSchema = z.strictObject({
  default: z.string().min(1).nullable().default(null)
    .meta({ description: 'Model id of the registry, or an absolute path of a model file, that the slot loads' }),
  context_size: z.int().min(MIN_CONTEXT_SIZE).max(MAX_CONTEXT_SIZE).nullable().default(null)
    .meta({ description: 'Context window in tokens; unset derives it from the model (at most 32768) or 8192' }),
  n_gpu_layers: z.int().min(-1).max(100_000).default(-1).meta({ description: 'Layers offloaded to the GPU; -1 means all' }),
  rope_freq_base: z.number().min(0).max(1e9).default(0).meta({ description: 'Deprecated: kept, never passed to the engine' }),
  labels: z.array(z.string()).max(MAX_LIST_ENTRIES).default([]).meta({ description: 'What the model can do: vision, tool-calling, ...' }),
  extra: freeTableSchema.default({}).meta({ description: 'Free table for the provider' })
})

export const slotServerSchema = z.strictObject({
  extra_args: extraArgsSchema.default([])
    .meta({ description: 'Engine flags that override the same flag from anywhere else; a string is split as a shell would' }),
  env: envSchema.default({}).meta({ description: 'Extra environment of the engine; overrides derived variables' })
})

export const slotNpuSchema = z.strictObject({
  chat: z.boolean().default(true),
  asr: z.boolean().default(false),
  embed: z.boolean().default(false)
}).meta({ description: 'What this anchor serves on the NPU' })

export const slotImageSchema = z.strictObject({
  idle_restore_minutes: z.int().min(0).max(525_600).default(60)
    .meta({ description: 'Quiet minutes before the GPU arbiter restores the LLM slots; 0 never. Applies live' }),
  default_size: z.string().regex(/^\d{2,5}x\d{2,5}$/i, { error: 'must look like 1024x1024' }).default('1024x1024'),
  default_steps: z.int().min(0).max(10_000).default(0).meta({ description: 'Sampling steps; 0 takes the default of the model' })
})

const slotMetaSchema = z.strictObject({
  pending_model: z.string().min(1).nullable().default(null)
    .meta({ description: 'Model that the slot gets when its pull completes; the slot is enabled then' }),
  pull_wanted: z.boolean().default(true).meta({ description: 'Pull the pending model automatically; false leaves that to an operator' }),
  pull_failed: z.string().nullable().default(null).meta({ description: 'Why the pull of the pending model failed' }),
  context_for: z.string().min(1).nullable().default(null)
    .meta({ description: 'Model that the context size was derived for; for another one it is derived again. Unset: set by an operator' }),
  service: z.string().min(1).nullable().default(null).meta({ description: 'Service that it was created for and is removed with' })
}).meta({ description: 'Values that the gateway maintains for the slot' })

/**
 * A slot after both placements of a slot file are folded into one. All defaults of slots
 * live here and nowhere else. Units: seconds, tokens, TCP ports.
 */
export const slotConfigSchema = z.strictObject({
  type: slotTypeSchema.default('llm').meta({ description: 'What the slot serves' }),
  device: deviceSchema.optional().meta({ description: 'Hardware preference; unset uses the best one found' }),
  port: z.int().min(1024).max(MAX_SLOT_PORT).optional().meta({ description: 'TCP port of the engine; unset takes a free one of the pool at each start' }),
  gpu_index: z.int().min(0).max(1023).nullable().default(null).meta({ description: 'Index of the GPU to use, among those of the device (all GPUs for Vulkan); unset exposes all' }),
  provider: z.string().regex(PLUGIN_NAME_PATTERN, { error: 'must be a provider name: lowercase words joined by dashes' }).nullable().default(null)
    .meta({ description: 'Engine provider that runs the slot; unset takes the default of its type and device' }),
  runtime: runtimeNameSchema.nullable().default(null)
    .meta({ description: '`process`: always a child process; `container`: a container if the gateway uses a container engine, else a child process; `docker`, `podman` or a plugin\'s driver: only that one; unset: what the engine\'s provider asks for, else as `container`' }),
  runtime_options: freeTableSchema.default({}).meta({ description: 'Options for the driver that `runtime` names, if a plugin provides it' }),
  profile: nameSchema.nullable().default(null).meta({ description: 'Profile name; unset takes the default of the device' }),
  role: z.enum(slotRoles).nullable().default(null).meta({ description: 'Routing hint; derived from the name when unset' }),
  enabled: z.boolean().default(true).meta({ description: 'Serve this slot and start it with the gateway' }),
  default: z.boolean().default(false).meta({ description: 'The default slot of its type; at most one per type' }),
  pinned: z.boolean().default(false).meta({ description: 'Never unloaded for low memory or idleness' }),
  enable_thinking: z.boolean().nullable().default(null).meta({ description: 'Reasoning default; a request may override it' }),
  mtp: z.boolean().nullable().default(null).meta({ description: 'Multi-token prediction: true on, false off, unset automatic' }),
  chat_template: z.string().min(1).nullable().default(null)
    .meta({ description: 'Chat template id; unset or auto takes the one in the model file' }),
  vision: z.boolean().default(true).meta({ description: 'Load the projector of the model when it has one' }),
  workers: z.int().min(1).max(1024).default(1).meta({ description: 'Requests that the engine works on in parallel' }),
  replicas: replicaCountSchema.min(1).default(1)
    .meta({ description: 'Number of engines to start when the slot is loaded; requests are balanced between them' }),
  min_replicas: replicaCountSchema.min(0).default(0)
    .meta({ description: 'Number of engines to keep running when idle, and to restart after a crash, once the slot is loaded' }),
  max_replicas: replicaCountSchema.min(1).nullable().default(null)
    .meta({ description: 'Maximum number of engines while requests are queued; unset is `replicas`' }),
  scale_up_wait_s: z.number().min(0).max(3_600).default(2)
    .meta({ description: 'Seconds that a request waits in the queue before another engine is started' }),
  scale_down_wait_s: z.int().min(1).max(86_400).default(300)
    .meta({ description: 'Idle seconds before an engine beyond `replicas` is stopped' }),
  prefix_affinity: z.boolean().default(true)
    .meta({ description: 'Send a conversation to the engine that has its prefix cached, unless that one is too busy' }),
  replica_gpus: z.array(z.int().min(0).max(1023)).max(MAX_REPLICAS).default([])
    .meta({ description: 'GPU of each engine in turn, numbered like `gpu_index`, which it replaces; [0, 1] puts every second one on the second GPU' }),
  idle_timeout_s: z.int().min(0).max(31_536_000).nullable().default(null)
    .meta({ description: 'Seconds without a request before the slot is unloaded; 0 never; unset takes the global value' }),
  default_voice: z.string().min(1).nullable().default(null).meta({ description: 'Voice for speech requests that name none' }),
  default_speed: z.number().min(0.25).max(4).nullable().default(null).meta({ description: 'Speed for speech requests that name none' }),
  default_response_format: z.enum(speechFormats).nullable().default(null)
    .meta({ description: 'Audio format for speech requests that name none' }),
  system_prompt: z.string().nullable().default(null).meta({ description: 'System prompt used when another model routes to this slot' }),
  served_by: nameSchema.nullable().default(null).meta({ description: 'Anchor slot whose process serves this one' }),
  container_image: z.string().min(1).nullable().default(null)
    .meta({ description: 'Container image that replaces the one of the profile (`image` in the file)' }),
  model: slotModelSchema.prefault({}),
  server: slotServerSchema.prefault({}),
  npu: slotNpuSchema.optional(),
  image: slotImageSchema.optional(),
  meta: slotMetaSchema.optional(),
  options: freeTableSchema.default({}).meta({ description: 'Settings of the provider plugin' })
})

export type SlotConfig = z.output<typeof slotConfigSchema>
export type SlotConfigInput = z.input<typeof slotConfigSchema>
