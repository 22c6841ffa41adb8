import { z } from 'zod'
import { ENV_NAME_PATTERN, envSchema } from './names.js'

/** A tool server's id is its file's name, its path below `/mcp/`, and the prefix of its tools where servers are mixed. */
export const TOOL_SERVER_ID_PATTERN = /^[a-z0-9][a-z0-9_-]{0,63}$/

/** Paths below `/mcp/` that are the gateway's own. */
export const reservedToolServerIds: readonly string[] = [
  'admin', 'memory', 'all', 'svc-admin', 'svc-memory',
  // words of /api/mcp
  'servers', 'clients', 'catalog', 'resolve', 'stream', 'install'
]

export const toolServerIdSchema = z.string().regex(TOOL_SERVER_ID_PATTERN, {
  error: 'must be lowercase letters, digits, `-` or `_`, start with a letter or digit, and have at most 64 characters'
})

export const toolServerTransports = ['stdio', 'streamable-http'] as const
export type ToolServerTransport = typeof toolServerTransports[number]

/** `public`: its name is looked up anew for each connection, and only an address of the public internet is connected to. */
export const toolServerNetworks = ['any', 'public'] as const
export type ToolServerNetwork = typeof toolServerNetworks[number]

const MAX_TOOL_NAMES = 512
const toolNames = z.array(z.string().min(1).max(128)).max(MAX_TOOL_NAMES).default([])

/** Which tools of a server there are. A number is how many its manifest tells of: older files have that. */
const toolChoiceSchema = z.preprocess(value => typeof value === 'number' ? {} : value, z.strictObject({
  allow: toolNames.meta({ description: 'If not empty, only these' }),
  gated: toolNames.meta({ description: 'Tools whose calls wait for an approval' }),
  blocked: toolNames.meta({ description: 'Tools that are hidden from everyone; overrides the others' })
}).prefault({}))

/** Where the tools of a server are offered. */
const exposureSchema = z.strictObject({
  direct: z.boolean().default(true).meta({ description: 'Offer its tools at /mcp/<id>' }),
  all: z.boolean().default(true).meta({ description: 'Offer its tools at /mcp/all, under names with its id' }),
  chats: z.boolean().default(true).meta({ description: 'Offer its tools to chats that name it in `omni`' })
})

const HEADER_OR_VARIABLE = /^[A-Za-z_][A-Za-z0-9_-]*$/

/**
 * One third-party tool server. It is run by `command`, else as its `spec` says, else reached at its `url`. Holds no
 * secret: `secrets` names keys of api.env.
 */
export const toolServerSchema = z.strictObject({
  name: z.string().max(200).default(''),
  description: z.string().max(4_000).default(''),
  spec: z.string().max(2_048).default('').meta({ description: '`npm:`, `uvx:` or `oci://` and a package, or the URL of a server' }),
  transport: z.enum(toolServerTransports).default('stdio'),
  command: z.string().min(1).max(4_096).regex(/^[^\0]*$/).optional().meta({ description: 'Program to run instead of `spec`; no shell' }),
  args: z.array(z.string().max(8_192).regex(/^[^\0]*$/)).max(256).default([]).meta({ description: 'Arguments of the program or package' }),
  url: z.url({ protocol: /^https?$/, error: 'must be an http or https URL' }).max(2_048).optional(),
  port: z.int().min(1).max(65_535).default(8_080).meta({ description: 'Port that a container serves streamable-http on' }),
  path: z.string().regex(/^\/[^\s?#]*$/, { error: 'must be a path that begins with /' }).max(512).default('/mcp')
    .meta({ description: 'Path that a container serves streamable-http at' }),
  env: envSchema.default({}),
  secrets: z.record(
    z.string().regex(HEADER_OR_VARIABLE, { error: 'must be the name of a variable, or of a header for a server with a url' }),
    z.string().regex(ENV_NAME_PATTERN, { error: 'must be the name of a key of api.env, not the secret itself' })
  ).default({}).meta({ description: 'Environment variables, or headers for a server with a url, mapped to keys of api.env' }),
  enabled: z.boolean().default(true),
  idle_stop_s: z.int().min(0).max(604_800).default(600).meta({ description: 'Idle time before the server is stopped; 0 is never' }),
  start_timeout_s: z.int().min(1).max(3_600).default(60),
  call_timeout_s: z.int().min(1).max(86_400).default(300).meta({ description: 'Longest silence during a call; progress messages reset it' }),
  allow_insecure_http: z.boolean().default(false).meta({ description: 'Allow http:// to a host other than this machine' }),
  network: z.enum(toolServerNetworks).default('any').meta({ description: 'Allowed location of a server with a url; `public` refuses addresses of private networks and of this machine' }),
  tools: toolChoiceSchema,
  exposure: exposureSchema.prefault({}),
  resources: z.int().min(0).optional(),
  prompts: z.int().min(0).optional(),
  installed_at: z.string().max(64).default(''),
  source_url: z.string().max(2_048).default(''),
  author: z.string().max(200).default('user'),
  verified: z.boolean().default(false)
}).superRefine((server, context) => {
  const { command, spec, url, transport } = server
  const refuse = (path: string, message: string): void => context.addIssue({ code: 'custom', path: [path], message })
  const remote = url ?? (/^https?:/.test(spec) ? spec : undefined)
  if (command === undefined && spec === '' && url === undefined) refuse('spec', 'is required where neither command nor url is given')
  if (command !== undefined && url !== undefined) refuse('url', 'cannot be combined with command: the gateway either runs the server or connects to it')
  if (remote !== undefined && command === undefined && transport !== 'streamable-http') refuse('transport', 'must be "streamable-http" for a server with a url')
  if (command !== undefined && transport !== 'stdio') refuse('transport', 'must be "stdio" for a command')
  if (/^(npm|npx|uvx|uv):/.test(spec) && url === undefined && transport !== 'stdio') refuse('transport', 'must be "stdio" for a package')
  if (command === undefined && url === undefined && spec !== '' && !/^(npm|npx|uvx|uv|oci|https?):/.test(spec)) {
    refuse('spec', 'must begin with npm:, npx:, uvx:, uv:, oci:// or http(s)://, or set command')
  }
  if (remote !== undefined && command === undefined && !server.allow_insecure_http && remote.startsWith('http:') && !isThisMachine(remote)) {
    refuse(url === undefined ? 'spec' : 'url', 'must be https, or allow_insecure_http must be true: http traffic can be intercepted')
  }
})
export type ToolServer = z.output<typeof toolServerSchema>
export type ToolServerInput = z.input<typeof toolServerSchema>
export type NamedToolServer = ToolServer & { readonly id: string }

function isThisMachine (url: string): boolean {
  if (!URL.canParse(url)) return false
  const { hostname } = new URL(url)
  return hostname === 'localhost' || hostname === '[::1]' || /^127\./.test(hostname)
}
