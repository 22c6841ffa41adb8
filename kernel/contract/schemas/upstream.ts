import { z } from 'zod'

export const authStyles = ['bearer', 'anthropic', 'google_query', 'header', 'none'] as const
export type AuthStyle = typeof authStyles[number]

export const UPSTREAM_NAME_PATTERN = /^[a-z0-9][a-z0-9_-]{0,63}$/

export const modelFiltersSchema = z.strictObject({
  models: z.array(z.string()).max(1_000).default([]).meta({ description: 'If not empty, only these ids are listed' }),
  include: z.array(z.string()).max(1_000).default([]).meta({ description: 'Glob patterns of ids to list' }),
  exclude: z.array(z.string()).max(1_000).default([]).meta({ description: 'Glob patterns of ids to hide; overrides include' })
})

/** People put the key itself here: it must not get into a file that others may read. */
const VARIABLE = /^([A-Za-z_][A-Za-z0-9_]*)?$/
const NOT_A_KEY = 'must be the name of a variable, not the key itself'

/** The name of the gateway itself: no upstream may have it. */
export const RESERVED_UPSTREAM_NAME = 'svc'

const name = z.string().regex(UPSTREAM_NAME_PATTERN, {
  error: 'must be lowercase letters, digits, `-` or `_`, start with a letter or digit, and have at most 64 characters'
}).refine(value => value !== RESERVED_UPSTREAM_NAME, { error: `must not be "${RESERVED_UPSTREAM_NAME}", the gateway's own name` })
const url = z.url({ protocol: /^https?$/, error: 'must be an http or https URL' })
  .meta({ description: 'Base URL, ending in /v1 by convention' })

/** Where an upstream is and how it is told who asks: what its template says of it, too. */
export const upstreamAddress = {
  url,
  auth_style: z.enum(authStyles).default('bearer'),
  auth_header: z.string().regex(/^[\w!#$%&'*+.^`|~-]*$/, { error: 'must be a header name' }).default('')
    .meta({ description: 'Header name for auth_style header' }),
  auth_value_env: z.string().regex(VARIABLE, { error: NOT_A_KEY }).default('')
    .meta({ description: 'Variable of api.env or the environment that holds the key' })
}

/**
 * How an upstream is called, alike in both files. Tries and fallbacks happen before the first byte of an answer has gone to the
 * client and never after; both are off unless they are asked for.
 */
const callShape = {
  timeout_seconds: z.number().positive().max(86_400).default(300).meta({ description: 'Longest wait for the head of an answer' }),
  connect_timeout_seconds: z.number().positive().max(3600).optional()
    .meta({ description: 'Longest wait for a connection; unset takes [dispatcher] connect_timeout_s' }),
  idle_timeout_seconds: z.number().min(0).max(86_400).optional()
    .meta({ description: 'Longest silence inside an answer, 0 is no limit; unset takes [dispatcher] direct_read_timeout_s' }),
  retries: z.int().min(0).max(10).default(0)
    .meta({ description: 'Retries after no answer, or 408, 409, 425, 429 or 5xx' }),
  retry_wait_seconds: z.number().min(0.05).max(60).default(0.5)
    .meta({ description: 'Pause before the first retry; doubles with each, minus a random part of up to half' }),
  retry_max_wait_seconds: z.number().min(0).max(600).default(20)
    .meta({ description: 'Longest pause. If Retry-After asks for more, there is no retry' }),
  fallback: z.array(z.string().min(1)).max(8).default([])
    .meta({ description: 'Where a request goes if this upstream fails, in this order: slots, models, <upstream>/<model>, or an upstream that has the same model' }),
  breaker_failures: z.int().min(0).max(1000).default(5)
    .meta({ description: 'Failures in a row after which the upstream is not used for a while; 0 is never' }),
  breaker_seconds: z.number().positive().max(3600).default(10)
    .meta({ description: 'How long it is not used at first; doubles while it keeps failing' }),
  pass_headers: z.array(z.string().regex(/^[\w!#$%&'+.^`|~-]+\*?$|^\*$/, { error: 'must be a header name, one that ends in *, or * alone' }))
    .max(100).optional()
    .meta({ description: 'Client headers to forward, such as "x-title" or "x-stainless-*"; unset forwards those of common APIs, `*` all' }),
  advertise_models: z.boolean().default(true).meta({ description: 'Whether GET /v1/models shows its models' }),
  enabled: z.boolean().default(true)
}

/**
 * One `[[upstream]]` of upstreams.toml: a remote that speaks the `/v1` wire format. Holds no key, only the name
 * of its variable.
 */
export const upstreamSchema = z.strictObject({
  name,
  kind: z.enum(['slot', 'remote']).default('remote'),
  ...upstreamAddress,
  slot_name: z.string().nullable().default(null),
  svc: z.boolean().default(false)
    .meta({ description: 'Whether it is another svc gateway: its slots are shown by `GET /api/slots?remote=true`' }),
  warmup_strategy: z.enum(['none', 'ondemand', 'always', 'lazy', 'eager']).default('none')
    .meta({ description: 'always and eager fetch the model list when the gateway starts; the others on first use' }),
  model_filters: modelFiltersSchema.optional(),
  ...callShape
}).refine(u => u.auth_style !== 'header' || u.auth_header !== '', {
  path: ['auth_header'], error: 'is required when auth_style is header'
}).refine(u => u.kind !== 'slot' || u.slot_name !== null, {
  path: ['slot_name'], error: 'is required when kind is slot'
})
export type Upstream = z.output<typeof upstreamSchema>

/** One `[[provider]]` of providers.toml: a catalogue entry switched on, with its overrides. */
export const externalProviderSchema = z.strictObject({
  catalog_id: z.string().min(1),
  name: name.optional(),
  base_url: url.optional(),
  auth_value_env: z.string().regex(VARIABLE, { error: NOT_A_KEY }).optional(),
  models: z.array(z.string()).max(1_000).default([]).meta({ description: 'If not empty, only these ids are listed' }),
  ...callShape
})
export type ExternalProvider = z.output<typeof externalProviderSchema>
