import { capabilityAliases, deviceSchema, fitStatuses, modelCapabilities, modelRowSchema, type ModelCapability } from 'svc-gateway/plugin'
import { z } from 'zod'
import { modelListRowSchema } from './record-schema.js'

export const idParamsSchema = z.strictObject({ id: z.string().meta({ description: 'Model id; a slash in it is written %2F', pattern: '^\\S{1,256}$', examples: ['qwen3-4b'] }) })

/** A capability, or another word for one. */
export const capabilitySchema = z.preprocess(
  value => typeof value === 'string' ? capabilityAliases[value.toLowerCase()] ?? value.toLowerCase() : value, z.enum(modelCapabilities)
) as unknown as z.ZodType<ModelCapability, string>

/** `?x`, `?x=true`, `1`, `yes`, `on`. */
const flag = z.stringbool({ truthy: ['', 'true', '1', 'yes', 'on'], falsy: ['false', '0', 'no', 'off'] })

/** Other keys are passed over: clients send what they like. */
export const listQuerySchema = z.object({
  search: z.string().optional().meta({ description: 'Only models with this text in their id or name' })
})

export const listSchema = z.strictObject({ models: z.array(modelListRowSchema), count: z.int(), filtered_aliases: z.int() })

export const curatedSchema = z.strictObject({
  id: z.string(),
  display_name: z.string(),
  description: z.string(),
  family: z.string(),
  size_gb: z.number(),
  vram_gb_min: z.number(),
  license: z.string(),
  license_url: z.string(),
  hf_repo: z.string(),
  hf_file: z.string(),
  mmproj_file: z.string(),
  context_length: z.int(),
  recommended_slot: z.string(),
  tags: z.array(z.string()),
  notes: z.string(),
  capability: z.enum(modelCapabilities),
  backend: z.string(),
  model_class: z.string(),
  comfyui_subdir: z.string(),
  bundle_only: z.boolean(),
  installed: z.boolean().meta({ description: 'Whether the registry has it' }),
  fit: z.strictObject({
    status: z.enum([...fitStatuses, 'unsupported']).meta({ description: '`spills`: part of it would stay in system memory; `unsupported`: no engine can run it on this machine' }),
    device: deviceSchema.nullable().meta({ description: 'Device of the estimate; null for `unsupported`' }),
    reasons: z.array(z.string())
  }).meta({ description: 'How well it fits this machine' })
})

export const catalogueSchema = z.strictObject({
  pullable: z.array(curatedSchema),
  upstream: z.array(z.strictObject({
    id: z.string(), owned_by: z.string(), upstream: z.string(), capability: z.enum(modelCapabilities)
  })),
  counts: z.strictObject({ pullable: z.int(), upstream: z.int(), total: z.int() })
})

const source = z.string().regex(/^[a-z0-9][a-z0-9-]{0,31}$/, { error: 'must be a short word, such as manual' })

export const registerBodySchema = z.strictObject({
  id: z.string().meta({ minLength: 1, maxLength: 256, pattern: '^\\S+$' }), ...modelRowSchema.shape, source: source.default('manual').meta({ description: 'Origin, for the event' })
})

export const addBodySchema = z.strictObject({
  path: z.string().meta({ description: 'Absolute path of the model file, or of the first of a split one', pattern: '^/' }),
  id: z.string().optional(),
  name: z.string().optional(),
  labels: z.array(capabilitySchema).optional().meta({ description: 'Capabilities, if header and name do not show them' }),
  overwrite: z.boolean().default(false)
})

const nullable = <T extends z.ZodType>(schema: T): z.ZodOptional<z.ZodNullable<T>> => schema.nullable().optional()
const { shape } = modelRowSchema

/** Any part of a row. `defaults` merge one level deep; null removes a key. */
export const updateBodySchema = z.strictObject({
  id: z.string().optional(),
  name: nullable(z.string()),
  path: shape.path.optional(),
  size_bytes: z.int().min(0).optional(),
  quant: nullable(z.string()),
  license: nullable(z.string()),
  capabilities: nullable(z.array(capabilitySchema)),
  hf_repo: nullable(z.string()),
  hf_filename: nullable(z.string()),
  tags: nullable(z.array(z.string())),
  backends: nullable(z.array(z.string())),
  mmproj: nullable(z.string()),
  defaults: nullable(z.record(z.string(), z.unknown())),
  metadata: nullable(z.record(z.string(), z.unknown()))
})

export const deleteQuerySchema = z.strictObject({
  force_cascade: flag.default(true).meta({ description: 'Unload slots that use it and clear it from their files; false refuses instead' })
})

export const deletedSchema = z.strictObject({ id: z.string(), deleted: z.literal(true), affected_slots: z.array(z.string()) })

export const previewBodySchema = z.strictObject({
  paths: z.array(z.string().startsWith('/', { error: 'must be an absolute path' })).min(1, { error: 'must name at least one path' }).max(64),
  recursive: z.boolean().default(true)
})

export const previewSchema = z.strictObject({
  preview: z.array(z.strictObject({
    path: z.string(),
    resolved_path: z.string().meta({ description: 'Where links lead' }),
    size_bytes: z.int(),
    suggested_backends: z.array(z.string()),
    suggested_capabilities: z.array(z.enum(modelCapabilities)),
    context_length: z.int().nullable(),
    confidence: z.number().meta({ description: '0 to 1' }),
    suggested_name: z.string(),
    suggested_id: z.string(),
    kind: z.enum(['model', 'projector', 'adapter', 'unknown']),
    problem: z.string().nullable().meta({ description: 'Why a scan would skip it' }),
    raw_hints: z.record(z.string(), z.unknown())
  })),
  count: z.int(),
  truncated: z.literal(true).optional().meta({ description: 'The search did not finish in time: give fewer folders' })
})

/** The rows are checked one by one: a bad one is skipped and told, the others are registered. */
export const scanBodySchema = z.strictObject({
  rows: z.array(z.unknown()).max(2000).optional().meta({
    description: '`{path, id?, name?, backends?, capabilities?, defaults?}`; without it the configured folders are searched'
  })
})

export const scannedSchema = z.strictObject({
  added: z.array(z.string()),
  skipped: z.array(z.strictObject({ path: z.string(), reason: z.string() })),
  scanned_roots: z.array(z.string())
})
