import { z } from 'zod'
import type { ApplyClass } from './setting.js'
import { freeTableSchema, MAX_LIST_ENTRIES } from './free-table.js'
import { PLUGIN_NAME_PATTERN } from './names.js'

/**
 * svc.toml, but for the tables of plugins (`SettingsTable`). Every default, bound, description and apply class of these keys
 * lives here. Suffixes carry units: `_s` seconds, `_ms` milliseconds, `_mb` MiB, `_bytes` bytes.
 */
const port = z.int().min(1024).max(65535)
/** As long as is useful, and short enough for every timer and sum that these run into. */
const HOUR_S = 3600
const DAY_S = 24 * HOUR_S
const YEAR_S = 365 * DAY_S
const GIB = 1024 ** 3
const absolutePath = z.string().startsWith('/', { error: 'must be an absolute path' })
const bareHost = z.string().regex(/^[^\s:/]+$/, { error: 'must be a bare host name or IPv4 address' })

/** What is said about a key: `apply_class` is part of `GET /api/settings/schema` (setting.ts says what the classes mean). */
type About = { readonly description: string, readonly apply_class: ApplyClass }
const live = (description: string): About => ({ description, apply_class: 'live' })
const slotRestart = (description: string): About => ({ description, apply_class: 'slot-restart' })
const gatewayRestart = (description: string): About => ({ description, apply_class: 'gateway-restart' })

export const serverSchema = z.strictObject({
  host: z.string().min(1).max(255).default('127.0.0.1').meta(gatewayRestart('Address the gateway listens on')),
  port: z.int().min(0).max(65535).default(8080).meta(gatewayRestart('Port the gateway listens on; 0 takes any free one')),
  allowed_hosts: z.array(z.string()).max(MAX_LIST_ENTRIES).default([])
    .meta(live('Host names that clients may use besides loopback and IP addresses; `*` allows all')),
  allowed_origins: z.array(z.string()).max(MAX_LIST_ENTRIES).default([])
    .meta(live('Web origins that may call the gateway besides its own; one that ends in `/v1` may call only that; `*` allows all')),
  api_body_limit_bytes: z.int().min(1024).max(GIB).default(1024 * 1024).meta(gatewayRestart('Largest body of a request to /api')),
  v1_body_limit_bytes: z.int().min(1024).max(GIB).default(64 * 1024 * 1024).meta(gatewayRestart('Largest JSON body of a request to /v1')),
  body_memory_bytes: z.int().min(0).max(1024 * GIB).default(256 * 1024 * 1024)
    .meta(gatewayRestart('Memory for the bodies of all requests until they are answered, as received; beyond that requests get 503')),
  body_idle_timeout_s: z.number().min(0).max(DAY_S).default(60)
    .meta(live('How long less than 16 KiB of a body may arrive before its request is aborted, at least a second; 0 is no limit')),
  upload_limit_bytes: z.int().min(1024).max(1024 * GIB).default(512 * 1024 * 1024)
    .meta(live('Largest upload; one that must wait needs as much disk space')),
  upload_memory_bytes: z.int().min(0).max(1024 * GIB).default(64 * 1024 * 1024)
    .meta(gatewayRestart('Memory for all waiting uploads before they go to disk; 0 always uses the disk')),
  upload_idle_timeout_s: z.number().min(0).max(DAY_S).default(60)
    .meta(live('How long a client may pause in the middle of an upload; 0 is no limit')),
  shutdown_grace_s: z.number().min(0).max(DAY_S).default(20).meta(live('How long streams may continue after a stop request')),
  log_level: z.enum(['debug', 'info', 'warn', 'error']).default('info').meta(live('Minimum severity of log lines'))
})

export const mcpSchema = z.strictObject({
  allowed_hosts: z.array(z.string()).max(MAX_LIST_ENTRIES).default([])
    .meta(live('Host names that may be used for /mcp besides those of [server] allowed_hosts; `*` allows all')),
  allowed_origins: z.array(z.string()).max(MAX_LIST_ENTRIES).default([])
    .meta(live('Web origins that may call /mcp besides those of [server] allowed_origins; when empty, those of the allowed hosts may')),
  all_tools: z.int().min(2).max(1000).default(100)
    .meta(live('Maximum number of tools that /mcp/all lists; further ones are reached through its tool_search and tool_call'))
})

export const runtimeDrivers = ['auto', 'docker', 'podman', 'process'] as const

export const runtimeSchema = z.strictObject({
  driver: z.enum(runtimeDrivers).default('auto').meta(gatewayRestart('Runtime of the engines; auto prefers a container engine')),
  stop_with_gateway: z.boolean().optional()
    .meta(live('Stop engines when the gateway stops; unset keeps containers running for the next start and stops child processes')),
  connect_timeout_s: z.number().min(0.1).max(HOUR_S).default(3).meta(gatewayRestart('How long to wait for a container engine to answer'))
})

export const slotsSchema = z.strictObject({
  max_slots: z.int().min(0).max(100_000).default(0).meta(live('Maximum number of slots; 0 is unlimited')),
  autostart: z.boolean().default(true)
    .meta(gatewayRestart('Start enabled slots with the gateway; off starts them at their first request')),
  port_range_start: port.default(8081).meta(live('First port of the allocation pool')),
  port_range_end: port.default(8099).meta(live('Last port of the allocation pool, inclusive')),
  idle_timeout_s: z.int().min(0).max(YEAR_S).default(300).meta(live('Idle seconds before a slot is unloaded; 0 never')),
  evict_pressure_mb: z.int().min(0).max(16 * 1024 * 1024).default(8192).meta(live('Free memory below which idle slots are evicted; 0 off')),
  publish_host: bareHost.default('127.0.0.1')
    .meta(slotRestart('Address that engines publish their port on; 0.0.0.0 exposes them on the network, bypassing the gateway')),
  image_pull_timeout_s: z.number().min(1).max(DAY_S).default(3600).meta(live('How long the pull of a container image may take')),
  model_fetch_timeout_s: z.number().min(1).max(DAY_S).default(3600).meta(live('How long an engine may fetch its model before it starts')),
  start_timeout_s: z.number().min(1).max(DAY_S).default(60).meta(live('How long the start of a container or process may take')),
  health_timeout_s: z.number().min(1).max(DAY_S).default(600).meta(live('How long a started engine may take to load its model')),
  health_refused_s: z.number().min(0).max(DAY_S).default(60).meta(live('How long a running engine may refuse connections, or its health check answer with a 4xx status, while it loads; 0 is as long as health_timeout_s')),
  unresponsive_s: z.number().min(0).max(DAY_S).default(60).meta(live('An engine with requests in flight is considered dead after this long without output or an answer to its health check; 0 is never')),
  first_token_timeout_s: z.number().min(0).max(DAY_S).default(0).meta(live('Longest wait for the first byte of an answer; 0 is no limit')),
  drain_timeout_s: z.number().min(0).max(DAY_S).default(30).meta(live('How long an unload waits for requests in flight')),
  gpu_drain_timeout_s: z.number().min(0).max(DAY_S).default(120)
    .meta(live('How long image mode waits for requests of the slots whose GPU it takes')),
  stop_timeout_s: z.number().min(0).max(DAY_S).default(10).meta(live('How long an engine may take to stop before it is killed'))
}).refine(s => s.port_range_end >= s.port_range_start, {
  path: ['port_range_end'], error: 'must not be below port_range_start'
})

export const dispatcherSchema = z.strictObject({
  prefetch_timeout_s: z.number().positive().max(600).default(8).meta(live('Longest wait for the model lists of upstreams')),
  prefetch_parallel_cap: z.int().min(1).max(1000).default(4).meta(live('How many upstreams are asked for their model list at once')),
  engine_passage: z.boolean().default(true)
    .meta(live('Whether /upstream/{slot or model}/* passes requests directly to the engines of slots')),
  list_unloaded: z.boolean().default(false)
    .meta(live('Whether GET /v1/models lists every enabled slot by its name, or only those that are loaded')),
  list_virtual: z.boolean().default(true)
    .meta(live('Whether GET /v1/models lists svc/* names of slots that it lists by their own name')),
  models_ttl_s: z.number().min(1).max(YEAR_S).default(300).meta(live('How long the model list of an upstream is trusted')),
  hold_headers_s: z.number().min(0).max(HOUR_S).default(2)
    .meta(live('How long the status line of a cold stream is held back, so that quick failures get their own status')),
  ping_interval_s: z.number().min(0).max(HOUR_S).default(10).meta(live('Interval of comment lines on a silent stream; 0 is off')),
  show_loading: z.boolean().default(false)
    .meta(live('Whether a streaming chat completion that waits for a cold slot reports the progress of the load as reasoning_content')),
  direct_read_timeout_s: z.number().min(0).max(600)
    .refine(seconds => seconds === 0 || seconds >= 30, { error: 'must be 0, which is no limit, or from 30 to 600' }).default(0)
    .meta(live('Longest silence of an engine in an answer, from 30 to 600; 0 is no limit')),
  connect_timeout_s: z.number().min(0.1).max(HOUR_S).default(5).meta(live('Longest wait for a connection to an engine or upstream')),
  queue_per_slot: z.int().min(1).max(1_000_000).default(512)
    .meta(live('How many requests may wait for a slot: for its start, or for a free worker; beyond that they get 503')),
  embedding_line_bytes: z.int().min(1024).max(16 * 1024 * 1024 * 1024).default(64 * 1024 * 1024)
    .meta(live('Bytes of embedding requests that may wait for a slot, regardless of their number; beyond that they get 503')),
  slow_reader_buffer_kb: z.int().min(16).max(1024 * 1024).default(4096)
    .meta(live('How far a slow reader of a shared stream may fall behind before it is disconnected'))
})

const aliasText = z.string().max(200).regex(/^[^\s\p{C}]+$/u, { error: 'must be 1 to 200 characters without spaces' })
const MOST_ALIASES = 1000

/** One hop: an alias leads to a name, never to another alias, so there is no way to go round in a circle. */
export const aliasesSchema = z.record(
  aliasText.refine(name => !name.startsWith('svc/'), { error: 'must not begin with svc/, which is for virtual names' }), aliasText
).superRefine((aliases, ctx) => {
  const names = Object.keys(aliases)
  if (names.length > MOST_ALIASES) ctx.addIssue({ code: 'custom', message: `must hold at most ${MOST_ALIASES} names` })
  for (const name of names.slice(0, MOST_ALIASES)) {
    const target = aliases[name]!
    if (target === name) ctx.addIssue({ code: 'custom', path: [name], message: 'must not point to itself' })
    else if (Object.hasOwn(aliases, target)) ctx.addIssue({ code: 'custom', path: [name], message: 'must not point to another alias; use the target of that one' })
  }
}).default({}).meta(live('Other names for models: the name that clients use, and the slot, svc/* name, model or <upstream>/<model> it stands for'))

export const modelsSchema = z.strictObject({
  roots: z.array(absolutePath).max(MAX_LIST_ENTRIES).default([]).meta(slotRestart('Folders to scan for models besides the store')),
  auto_scan_on_start: z.boolean().default(true).meta(gatewayRestart('Scan for models when the gateway starts')),
  file_extensions: z.array(z.string().regex(/^\.[A-Za-z0-9]{1,16}$/, { error: 'must be a dot and letters or digits, such as .gguf' })).min(1)
    .max(MAX_LIST_ENTRIES).default(['.gguf', '.safetensors']).meta(live('File extensions that a scan treats as models')),
  store: z.union([z.literal(''), absolutePath]).default('')
    .meta(slotRestart('Folder of the models; empty is the one below the state root')),
  pull_root: absolutePath.optional().meta({ ...slotRestart('Deprecated name of store'), deprecated: true })
})

export const activitySchema = z.strictObject({
  enabled: z.boolean().default(true).meta(live('Keep audit rows')),
  retention_days: z.int().min(1).max(36_500).default(30).meta(live('How long audit rows are kept')),
  max_rows: z.int().min(100).max(1_000_000_000).default(50000).meta(live('How many audit rows are kept'))
})

/** A tool of the gateway's own servers by its name, one of another server as `<server>/<tool>`. */
const toolName = z.string().regex(/^(?:[a-z0-9][a-z0-9_-]{0,63}\/)?[A-Za-z0-9_-]{1,64}$/, { error: 'must be the name of a tool, or <server>/<tool>' })
const toolNames = z.array(toolName).max(MAX_LIST_ENTRIES).default([])

export const approvalsSchema = z.strictObject({
  ttl_s: z.int().min(10).max(30 * DAY_S).default(DAY_S).meta(live('How long a call of a gated tool waits for an operator before it expires')),
  auto: toolNames.meta(live('Gated tools that run without approval, for agents whose file does not gate them: names, or <server>/<tool> for installed servers')),
  never: toolNames.meta(live('Tools that no agent may call or see; a plain name means that tool of every server'))
})

/** npm takes no longer name. */
const MAX_PLUGIN_NAME = 214
const packageName = z.string().min(1).max(MAX_PLUGIN_NAME)
const pluginName = z.string().max(MAX_PLUGIN_NAME).regex(PLUGIN_NAME_PATTERN)

export const pluginsSchema = z.strictObject({
  allow: z.array(packageName).max(MAX_LIST_ENTRIES).default([]).meta(live('Exact package names of third-party plugins to load')),
  required: z.array(pluginName).max(MAX_LIST_ENTRIES).default([])
    .meta(gatewayRestart('Plugins without which the gateway refuses to start')),
  disabled: z.array(pluginName).max(MAX_LIST_ENTRIES).default([]).meta(live('Plugins not to load')),
  config: z.record(z.string(), freeTableSchema).default({})
    .meta(gatewayRestart('One table per plugin, checked by the schema of the plugin'))
})

export const svcConfigSchema = z.strictObject({
  meta: z.strictObject({
    schema_version: z.int().min(1).default(1).meta({ ...gatewayRestart('Managed by the gateway'), readOnly: true })
  }).prefault({}),
  server: serverSchema.prefault({}),
  mcp: mcpSchema.prefault({}),
  runtime: runtimeSchema.prefault({}),
  slots: slotsSchema.prefault({}),
  dispatcher: dispatcherSchema.prefault({}),
  aliases: aliasesSchema,
  models: modelsSchema.prefault({}),
  activity: activitySchema.prefault({}),
  approvals: approvalsSchema.prefault({}),
  plugins: pluginsSchema.prefault({})
})

export type SvcConfig = z.output<typeof svcConfigSchema>
