import {
  authStyles, circuitStates, modelFiltersSchema, surfaceNames, UPSTREAM_NAME_PATTERN, upstreamSchema, upstreamSources
} from 'svc-gateway/plugin'
import { z } from 'zod'

/** One upstream, without its key. */
export const upstreamObjectSchema = z.strictObject({
  name: z.string(),
  kind: z.enum(['slot', 'remote']),
  source: z.enum(upstreamSources).meta({ description: 'The file that defines it' }),
  url: z.string(),
  auth_style: z.enum(authStyles),
  auth_header: z.string(),
  auth_value_env: z.string().meta({ description: 'Variable that holds the key' }),
  auth_configured: z.boolean().meta({ description: 'Whether it needs a key and has a variable for it' }),
  auth_key_present: z.boolean().meta({ description: 'Whether the variable is set' }),
  timeout_seconds: z.number(),
  connect_timeout_seconds: z.number().nullable().meta({ description: 'null: [dispatcher] connect_timeout_s' }),
  idle_timeout_seconds: z.number().nullable().meta({ description: 'null: [dispatcher] direct_read_timeout_s' }),
  retries: z.int(),
  retry_wait_seconds: z.number(),
  retry_max_wait_seconds: z.number(),
  fallback: z.array(z.string()),
  pass_headers: z.array(z.string()).nullable().meta({ description: 'null: those of common APIs' }),
  breaker_failures: z.int(),
  breaker_seconds: z.number(),
  slot_name: z.string().nullable(),
  svc: z.boolean().meta({ description: 'Whether it is another gateway: GET /api/slots?remote=true shows its slots' }),
  warmup_strategy: upstreamSchema.shape.warmup_strategy.removeDefault(),
  advertise_models: z.boolean(),
  enabled: z.boolean(),
  model_filters: modelFiltersSchema.nullable(),
  models: z.array(z.string()).meta({ description: 'Ids of its last valid list, and those in its filters' }),
  refreshed_at: z.string().nullable().meta({ description: 'ISO 8601 UTC of the last valid list' }),
  error: z.string().nullable().meta({ description: 'Why the last fetch of the list failed' }),
  circuit: z.strictObject({
    state: z.enum(circuitStates),
    failures: z.int().meta({ description: 'In a row' }),
    retry_in_ms: z.int().meta({ description: 'How long it is still not used' })
  })
}).meta({ title: 'Upstream' })
export type UpstreamObject = z.output<typeof upstreamObjectSchema>

const { shape } = upstreamSchema

/** Bounds and words of the file's schema, without its defaults: what is not given is not written. */
const given = {
  url: shape.url.optional(),
  auth_style: shape.auth_style.removeDefault().optional(),
  auth_header: shape.auth_header.removeDefault().optional(),
  auth_value_env: shape.auth_value_env.removeDefault().optional(),
  timeout_seconds: shape.timeout_seconds.removeDefault().optional(),
  retries: shape.retries.removeDefault().optional(),
  retry_wait_seconds: shape.retry_wait_seconds.removeDefault().optional(),
  retry_max_wait_seconds: shape.retry_max_wait_seconds.removeDefault().optional(),
  fallback: shape.fallback.removeDefault().optional(),
  breaker_failures: shape.breaker_failures.removeDefault().optional(),
  breaker_seconds: shape.breaker_seconds.removeDefault().optional(),
  warmup_strategy: shape.warmup_strategy.removeDefault().optional(),
  advertise_models: shape.advertise_models.removeDefault().optional(),
  enabled: shape.enabled.removeDefault().optional(),
  svc: shape.svc.removeDefault().optional()
}

const filters = z.strictObject({
  models: z.array(z.string()).optional(),
  include: z.array(z.string()).optional(),
  exclude: z.array(z.string()).optional()
})

const authValue = z.string().min(1).max(8192).optional().meta({
  description: 'The key itself, written to api.env and never shown again; required if an existing key would go to another address'
})

export const createBodySchema = z.strictObject({
  name: z.string().regex(UPSTREAM_NAME_PATTERN, {
    error: 'must be lowercase letters, digits, `-` or `_`, start with a letter or digit, and have at most 64 characters'
  }),
  auth_value: authValue,
  catalog_id: z.string().optional().meta({ description: 'A template of GET /api/providers/catalog that fills in missing fields' }),
  ...given,
  connect_timeout_seconds: shape.connect_timeout_seconds,
  idle_timeout_seconds: shape.idle_timeout_seconds,
  pass_headers: shape.pass_headers,
  model_filters: filters.optional()
})
export type CreateBody = z.output<typeof createBodySchema>

export const patchBodySchema = z.strictObject({
  auth_value: authValue,
  ...given,
  connect_timeout_seconds: shape.connect_timeout_seconds.nullable().meta({ description: 'null removes it' }),
  idle_timeout_seconds: shape.idle_timeout_seconds.nullable().meta({ description: 'null removes it' }),
  pass_headers: shape.pass_headers.nullable().meta({ description: 'null removes it' }),
  model_filters: filters.nullable().optional().meta({ description: 'Lists that are given replace those of the file; null removes all' })
})
export type PatchBody = z.output<typeof patchBodySchema>

export const nameParamsSchema = z.strictObject({ name: z.string().meta({ description: 'Upstream name', pattern: UPSTREAM_NAME_PATTERN.source, examples: ['openai'] }) })

export const deletedSchema = z.strictObject({
  ok: z.literal(true),
  name: z.string(),
  removed_from_toml: z.boolean(),
  hint: z.string().nullable()
})

export const testedSchema = z.strictObject({
  ok: z.boolean(),
  status: z.int().nullable().meta({ description: 'HTTP status of its answer; null if there was none' }),
  latency_ms: z.int(),
  models_count: z.int().nullable(),
  error: z.string().nullable()
})

export const templateSchema = z.strictObject({
  id: z.string(),
  name: z.string(),
  base_url: z.string().nullable().meta({ description: 'null: set by the caller' }),
  auth: z.enum(authStyles),
  auth_header_name: z.string(),
  auth_value_env: z.string().meta({ description: 'Default variable for the key' }),
  category: z.enum(['cloud', 'local', 'custom']),
  capabilities: z.array(z.enum(surfaceNames))
})

export const credentialsBodySchema = z.strictObject({
  key: z.string().meta({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$', description: 'Name of the variable; must be the upstream\'s `auth_value_env`' }),
  value: z.string().meta({ minLength: 1, pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]*$', description: 'The key itself; written to api.env and never shown again' })
})

export const credentialsSchema = z.strictObject({
  ok: z.literal(true),
  name: z.string(),
  key: z.string(),
  value: z.string().meta({ description: 'Eight bullets' }),
  hint: z.string()
})
