import { argvSegmentNames, madeWhenRead, NAME_PATTERN, pullStates, slotConfigSchema, slotStateSchema } from 'svc-gateway/plugin'
import { z } from 'zod'

/** Any text: a name that no slot can have is a slot that does not exist. */
export const nameParamsSchema = z.strictObject({ name: z.string().meta({ description: 'Slot name', pattern: NAME_PATTERN.source, examples: ['agent'] }) })

/** `?force`, `?force=true`, `1`, `yes`, `on`. */
const flag = z.stringbool({ truthy: ['', 'true', '1', 'yes', 'on'], falsy: ['false', '0', 'no', 'off'] })

export const listQuerySchema = z.strictObject({
  remote: flag.default(false).meta({ description: 'Include slots of upstreams that are gateways' })
})

export const forceQuerySchema = z.strictObject({
  force: flag.default(false).meta({ description: 'Even if the slot is pinned, and without waiting for requests in flight' })
})
export const unloadBodySchema = z.strictObject({ force: z.boolean().optional() })

type Properties = NonNullable<z.core.JSONSchema.BaseSchema['properties']>
type Property = Properties[string]

let ofSlot: Properties | null = null
const slotProperties = (): Properties => ofSlot ??= z.toJSONSchema(slotConfigSchema, { io: 'input', unrepresentable: 'any' }).properties ?? {}

function inner (table: string): Readonly<Record<string, Property>> {
  return (slotProperties()[table] as { readonly properties?: Readonly<Record<string, Property>> }).properties ?? {}
}

/** With null for every key, in tables too: it takes the key out. */
function nullable (keys: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(keys).map(([key, schema]) => [key, { anyOf: [nullableInside(schema), { type: 'null' }] }]))
}

function nullableInside (schema: unknown): unknown {
  const { anyOf, properties, additionalProperties } = schema as JsonSchema
  return {
    ...schema as JsonSchema,
    ...(anyOf === undefined ? {} : { anyOf: anyOf.map(nullableInside) }),
    ...(properties === undefined ? {} : { properties: nullable(properties) }),
    ...(typeof additionalProperties === 'object' ? { additionalProperties: { anyOf: [additionalProperties, { type: 'null' }] } } : {})
  }
}

interface JsonSchema {
  readonly anyOf?: readonly unknown[]
  readonly properties?: Readonly<Record<string, unknown>>
  readonly additionalProperties?: unknown
}

/** Keys of `[model]` and `[server]` that may be written flat, tables that may be one text, and old spellings. */
const slotKeys = (properties = slotProperties()): Readonly<Record<string, unknown>> => ({
  ...nullable({
    ...properties,
    model: { anyOf: [properties.model, { type: 'string', description: 'The same as `model.default`' }] },
    image: { anyOf: [properties.image, { type: 'string', description: 'The same as `container_image`' }] },
    ctx_size: inner('model').context_size,
    context_size: inner('model').context_size,
    n_gpu_layers: inner('model').n_gpu_layers,
    rope_freq_base: inner('model').rope_freq_base,
    extra_args: inner('server').extra_args,
    env: inner('server').env,
    backend: { type: 'string', deprecated: true, description: 'Old name of `device`' }
  }),
  slot: { type: 'object', description: 'The same keys in a table', additionalProperties: true },
  defaults: { type: 'object', deprecated: true, additionalProperties: true }
})

/**
 * Slot files have two placements and old spellings, so the configuration service checks them, not this schema: it
 * names every problem where the caller wrote it. The schema only documents the keys.
 */
const slotBody = z.record(z.string(), z.unknown())

export const createBodySchema = slotBody.meta(madeWhenRead(() => ({
  description: 'A slot file as JSON, with its `name`. `model` may be a string; `ctx_size` is an alias of `model.context_size`',
  properties: { name: { type: 'string', pattern: NAME_PATTERN.source, description: 'Name of the new slot' }, ...slotKeys() },
  required: ['name'],
  additionalProperties: false
})))

export const configBodySchema = slotBody.meta(madeWhenRead(() => ({
  description: 'Changes: scalars and lists replace, tables merge one level deep, null removes a key',
  properties: slotKeys(),
  additionalProperties: false
})))

export const defaultsBodySchema = slotBody.meta(madeWhenRead(() => ({
  description: 'Keys of `[model]`: `default`, `context_size`, `n_gpu_layers`, ...; null removes a key',
  properties: nullable(inner('model')),
  additionalProperties: false
})))

export const slotFileSchema = z.record(z.string(), z.unknown()).meta({ description: 'The slot file as JSON' })

const modelId = z.string().min(1).meta({ description: 'Model id of the registry, or an absolute path' })

export const loadBodySchema = z.strictObject({ model_id: modelId.optional(), model: modelId.optional() })
  .refine(body => body.model_id === undefined || body.model === undefined || body.model_id === body.model, {
    path: ['model'], error: 'contradicts model_id; give one of the two'
  })

/** What is missing is told with a code of its own. */
export const swapBodySchema = z.strictObject({ model_id: z.string().optional(), model: z.string().optional() })

export const backendNames = ['rocm', 'vulkan', 'cuda', 'cpu', 'auto'] as const
export const backendBodySchema = z.strictObject({
  backend: z.enum(backendNames).meta({ description: 'Rewrites the device; auto uses the best one found' })
})

export const deletedSchema = z.strictObject({ name: z.string(), deleted: z.literal(true), forced: z.boolean() })

export const resolvedSchema = z.strictObject({
  name: z.string(),
  argv: z.array(z.string()).nullable(),
  provenance: z.array(z.strictObject({ flag: z.string(), value: z.string().nullable(), segment: z.enum(argvSegmentNames) }))
    .meta({ description: 'The segment that set the final value of each flag' }),
  removed: z.int().meta({ description: 'Duplicate flags that were removed' })
}).meta({ title: 'ResolvedCommand' })

export const voicesSchema = z.strictObject({
  name: z.string(),
  voices: z.array(z.unknown()),
  source: z.enum(['live', 'offline'])
})

export const stateSchema = z.strictObject({
  name: z.string(),
  state: slotStateSchema,
  port: z.int().nullable(),
  model_id: z.string().nullable(),
  backend: z.string(),
  message: z.string(),
  updated_at: z.number().meta({ description: 'When the state was entered, epoch seconds' })
}).meta({ title: 'SlotStateView' })

const quiet = flag.default(true).meta({ description: 'Leave out lines caused by the gateway\'s own polling' })

export const logQuerySchema = z.strictObject({
  lines: z.coerce.number().int().min(1).max(5000).default(200).meta({ description: 'Number of last lines' }),
  quiet
})
export const logStreamQuerySchema = z.strictObject({
  backfill: z.coerce.number().int().min(0).max(5000).default(400).meta({ description: 'Number of last lines to send first' }),
  quiet
})
export const logsSchema = z.strictObject({
  name: z.string(),
  logs: z.array(z.string()),
  hint: z.string().optional().meta({ description: 'Why there are no lines' })
}).meta({ title: 'SlotLogs' })

const pullShape = {
  slot_name: z.string(),
  image: z.string(),
  state: z.enum(pullStates),
  layer: z.int().meta({ description: 'Finished layers' }),
  total_layers: z.int(),
  current_bytes: z.int(),
  total_bytes: z.int(),
  error: z.string().nullable()
}
export const pullStatusSchema = z.strictObject(pullShape).meta({ title: 'ImagePull' })
export const pullStartedSchema = z.strictObject({
  resumed: z.boolean().meta({ description: 'Whether it was already running' }), ...pullShape
})
