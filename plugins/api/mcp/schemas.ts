import { TOOL_SERVER_ID_PATTERN, toolServerIdSchema, toolServerNetworks, toolServerTransports } from 'svc-gateway/plugin'
import { z } from 'zod'
import { logKinds, serverStates, sourceKinds } from '../../services/tool-servers/ref.js'

export const idParamsSchema = z.strictObject({ id: z.string().max(128).meta({ description: 'Id of a tool server', pattern: TOOL_SERVER_ID_PATTERN.source, examples: ['svc-admin'] }) })

export const toolDetailSchema = z.strictObject({
  name: z.string(),
  description: z.string(),
  args: z.string().meta({ description: 'Names of its arguments; optional ones end with a question mark' }),
  read_only: z.boolean(),
  destructive: z.boolean(),
  idempotent: z.boolean(),
  open_world: z.boolean(),
  gated: z.boolean().meta({ description: 'Whether its calls wait for an approval' })
})

export const serverSchema = z.strictObject({
  id: z.string(),
  name: z.string(),
  description: z.string(),
  bundled: z.boolean().meta({ description: 'Part of the gateway itself' }),
  state: z.enum(serverStates),
  transport: z.enum(toolServerTransports).meta({ description: 'Transport between gateway and server; clients use streamable-http' }),
  connect_url: z.string().nullable().meta({ description: 'Address for clients; null before the gateway listens, and if it is not offered directly' }),
  pid: z.int().nullable(),
  version: z.string().nullable(),
  protocol: z.string().nullable().meta({ description: 'Protocol revision that it speaks; null while not connected' }),
  tools: z.int().meta({ description: 'Number of tools; -1 if unknown' }),
  tool_details: z.array(toolDetailSchema),
  dropped_tools: z.array(z.strictObject({ name: z.string(), reason: z.string() })).meta({ description: 'Its tools that cannot be offered' }),
  resources: z.int(),
  prompts: z.int(),
  running: z.int().meta({ description: 'Calls under way' }),
  activity: z.strictObject({ rpm: z.int().meta({ description: 'Calls in the last minute' }) }),
  connected: z.array(z.string()).meta({ description: 'Clients that called it in the last five minutes' }),
  provider: z.string().meta({ description: 'Who made it' }),
  error: z.string().nullable().meta({ description: 'Why it is not running' }),
  retry_in_ms: z.int().nullable().meta({ description: 'Milliseconds until the next attempt; null if none is due' }),
  spec: z.string().optional(),
  source_url: z.string().optional(),
  env: z.record(z.string(), z.string()).optional().meta({ description: 'Values that look like secrets are masked' }),
  secrets: z.record(z.string(), z.string()).optional().meta({ description: 'Variables or headers, mapped to keys of api.env' }),
  enabled: z.boolean().optional(),
  exposure: z.strictObject({ direct: z.boolean(), all: z.boolean(), chats: z.boolean() }).optional().meta({ description: 'Whether its tools are offered at its own address, at /mcp/all, and to chats that name it in `omni`' }),
  network: z.enum(toolServerNetworks).optional().meta({ description: 'Where a server with a url may be; `public` refuses private networks and this machine' }),
  installed_at: z.string().optional(),
  verified: z.boolean().optional()
}).meta({ title: 'ToolServer' })
export type ServerRow = z.output<typeof serverSchema>

export const serversSchema = z.strictObject({ servers: z.array(serverSchema), count: z.int() })
export const oneServerSchema = z.strictObject({ server: serverSchema })

export const clientsSchema = z.strictObject({
  clients: z.array(z.strictObject({
    id: z.string(),
    name: z.string(),
    role: z.enum(['CLI', 'IDE', 'App']).meta({ description: 'Guessed from its name' }),
    host: z.literal('—'),
    since: z.string().meta({ description: 'First recorded call, ISO 8601 UTC' }),
    connected_to: z.array(z.string())
  })),
  count: z.int()
})

const resolvedSchema = {
  id: z.string(),
  name: z.string(),
  description: z.string(),
  spec: z.string(),
  transport: z.enum(toolServerTransports),
  args: z.array(z.string()),
  tools: z.int(),
  resources: z.int(),
  prompts: z.int(),
  env_required: z.array(z.string()),
  source_kind: z.enum(sourceKinds),
  source_url: z.string().optional(),
  author: z.string(),
  verified: z.boolean(),
  network: z.literal('public').optional().meta({ description: 'For a server with a url: whether every connection must go to a public address' })
}
export const manifestSchema = z.strictObject(resolvedSchema).meta({ title: 'ResolvedManifest' })

/** Empty and long addresses have codes of their own, so the schema tells of the bounds and lets them pass. */
export const resolveQuerySchema = z.strictObject({
  url: z.string().default('').meta({ description: 'Address of a manifest or server, or a spec; 1 to 2048 characters', examples: ['npm:@modelcontextprotocol/server-everything'] })
}).meta({ required: ['url'] })

export const catalogSchema = z.strictObject({
  items: z.array(z.strictObject({
    id: z.string(), name: z.string(), author: z.string(), verified: z.boolean(), description: z.string(), category: z.string(),
    spec: z.string(), homepage: z.string().nullable()
  })),
  categories: z.array(z.string())
})
export const catalogQuerySchema = z.strictObject({
  search: z.string().max(200).optional().meta({ description: 'Text in id, name or description' }),
  category: z.string().max(64).optional()
})
export const refreshedSchema = z.strictObject({ items: z.int().meta({ description: 'Number of servers in the registry that can be installed' }) })

const settings = {
  args: z.array(z.string().max(8_192)).max(256).optional(),
  env: z.record(z.string(), z.string()).optional(),
  secrets: z.record(z.string(), z.string()).optional().meta({ description: 'Environment variables, or headers for a server with a url, mapped to keys of api.env' }),
  enabled: z.boolean().optional()
}

export const installBodySchema = z.strictObject({
  url: z.string().optional().meta({ description: 'As for GET /api/mcp/resolve' }),
  spec: z.string().optional().meta({ description: 'The same' }),
  manifest: z.unknown().optional().meta({
    description: 'Instead of both: a resolved manifest, or the keys of a file in mcp-servers/ such as command and args', type: 'object'
  }),
  id: toolServerIdSchema.optional().meta({ description: 'Id; default is the one in the manifest' }),
  ...settings
})
export type InstallBody = z.output<typeof installBodySchema>

export const installedSchema = z.strictObject({
  installed: serverSchema,
  env_missing: z.array(z.string()).meta({ description: 'Variables that it needs and that neither env nor secrets set' })
})

export const uninstalledSchema = z.strictObject({ uninstalled: z.string() })

/** `env` and `enabled` have codes of their own. */
export const configBodySchema = z.strictObject({
  env: z.unknown().optional().meta({ description: 'Merged into the existing ones; null removes a variable', type: 'object' }),
  enabled: z.unknown().optional().meta({ type: 'boolean' }),
  secrets: z.record(z.string(), z.string().nullable()).optional().meta({ description: 'Merged as env is' }),
  args: settings.args,
  network: z.enum(toolServerNetworks).optional(),
  // the record judges them, as those of a file; the document tells of the bounds
  idle_stop_s: z.int().optional().meta({ minimum: 0, maximum: 604_800 }),
  start_timeout_s: z.int().optional().meta({ minimum: 1, maximum: 3_600 }),
  call_timeout_s: z.int().optional().meta({ minimum: 1, maximum: 86_400 })
})

const names = z.array(z.string().min(1).max(128)).max(512).optional()
export const toolsBodySchema = z.strictObject({
  allow: names.meta({ description: 'If not empty, only these' }),
  gated: names.meta({ description: 'Tools whose calls wait for an approval' }),
  blocked: names
})

export const exposureBodySchema = z.strictObject({
  direct: z.boolean().optional().meta({ description: 'Offer its tools at /mcp/{id}' }),
  all: z.boolean().optional().meta({ description: 'Offer its tools at /mcp/all' }),
  chats: z.boolean().optional().meta({ description: 'Offer its tools to chats that name it in `omni`' })
})

export const testedSchema = z.strictObject({
  ok: z.boolean(), latency_ms: z.int(), tools: z.int().nullable(), protocol: z.string().nullable(), error: z.string().nullable()
})

export const logsQuerySchema = z.strictObject({ limit: z.coerce.number().int().min(1).max(500).default(100) })
export const logsSchema = z.strictObject({
  server: z.string(),
  events: z.array(z.strictObject({
    ts: z.string(),
    kind: z.enum([...logKinds, 'call']).meta({ description: 'stdout: output that is not part of the protocol' }),
    message: z.string()
  })),
  count: z.int()
})
