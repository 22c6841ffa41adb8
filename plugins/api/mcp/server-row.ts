import { isSecretKey, type NamedToolServer, type ToolEntry, type ToolServerInfo } from 'svc-gateway/plugin'
import type { ServerStatus } from '../../services/tool-servers/ref.js'
import type { ServerRow } from './schemas.js'

export interface RowContext {
  /** Of the gateway; null before it listens. */
  readonly baseUrl: string | null
  readonly version: string
  readonly lately: (server: string) => { readonly rpm: number, readonly connected: readonly string[] }
  readonly tools: (server: string) => readonly ToolEntry[]
}

const MASKED = '••••••••'

/** A tool server of the gateway itself. Pure. */
export function bundledRow ({ id, title, description, source }: ToolServerInfo, context: RowContext): ServerRow {
  const tools = context.tools(id)
  const { resources, prompts } = source?.counts?.() ?? { resources: 0, prompts: 0 }
  return {
    ...shared(id, tools, context),
    id: `svc-${id}`,
    name: title,
    description,
    bundled: true,
    state: 'running',
    transport: 'streamable-http',
    pid: null,
    version: context.version,
    protocol: null,
    tools: tools.length,
    dropped_tools: [],
    resources,
    prompts,
    running: 0,
    provider: 'svc',
    error: null,
    retry_in_ms: null
  }
}

/** An installed one. Secrets are names only; values of `env` that look like one are masked. Pure. */
export function installedRow (server: NamedToolServer, status: ServerStatus, context: RowContext): ServerRow {
  const { id, name, description, transport, author, spec, source_url: sourceUrl, env, secrets, enabled, verified } = server
  return {
    ...shared(id, context.tools(id), context),
    ...server.exposure.direct ? {} : { connect_url: null },
    id,
    name: name === '' ? id : name,
    description,
    bundled: false,
    state: status.state,
    transport,
    pid: status.pid,
    version: status.version,
    protocol: status.protocol,
    tools: status.tools?.length ?? -1,
    dropped_tools: [...status.dropped],
    resources: status.resources,
    prompts: status.prompts,
    running: status.running,
    provider: author,
    error: status.error,
    retry_in_ms: status.retryInMs === null ? null : Math.ceil(status.retryInMs),
    spec,
    source_url: sourceUrl,
    env: Object.fromEntries(Object.entries(env).map(([key, value]) => [key, isSecretKey(key) ? MASKED : value])),
    secrets: { ...secrets },
    enabled,
    verified,
    exposure: { ...server.exposure },
    network: server.network,
    installed_at: server.installed_at
  }
}

type Shared = Pick<ServerRow, 'connect_url' | 'tool_details' | 'activity' | 'connected'>

function shared (id: string, tools: readonly ToolEntry[], { baseUrl, lately }: RowContext): Shared {
  const { rpm, connected } = lately(id)
  return {
    connect_url: baseUrl === null ? null : `${baseUrl}/mcp/${id}`,
    tool_details: tools.map(detail),
    activity: { rpm },
    connected: [...connected]
  }
}

/** Hints that a server leaves out mean what the protocol says they do. */
function detail ({ name, description, inputSchema, gated, annotations }: ToolEntry): ServerRow['tool_details'][number] {
  const { readOnly = false, destructive = !readOnly, idempotent = false, openWorld = true } = annotations
  const args = signature(inputSchema)
  return { name, description, args, read_only: readOnly, destructive, idempotent, open_world: openWorld, gated }
}

function signature ({ properties, required }: Readonly<Record<string, unknown>>): string {
  const names = typeof properties === 'object' && properties !== null ? Object.keys(properties) : []
  const needed = Array.isArray(required) ? required as unknown[] : []
  return names.map(name => needed.includes(name) ? name : `${name}?`).join(', ')
}
