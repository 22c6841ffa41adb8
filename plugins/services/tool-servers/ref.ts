import { createServiceRef, type NamedToolServer } from 'svc-gateway/plugin'

export const serverStates = ['stopped', 'starting', 'running', 'failed', 'reachable', 'unreachable', 'disabled'] as const
export type ServerState = typeof serverStates[number]

export const logKinds = ['state', 'stderr', 'stdout'] as const

export interface ServerLogEntry {
  /** ISO 8601 UTC. */
  readonly ts: string
  /** `stdout`: what a program printed where the protocol is spoken. */
  readonly kind: typeof logKinds[number]
  readonly message: string
}

/** A tool of a server, as it is offered. */
export interface OfferedTool {
  readonly name: string
  /** What its server calls it, where that is no name that clients take. */
  readonly own: string
  readonly title: string | null
  readonly description: string
  readonly inputSchema: Readonly<Record<string, unknown>>
  readonly outputSchema: Readonly<Record<string, unknown>> | null
  /** Hints of the protocol, such as `readOnlyHint`. */
  readonly annotations: Readonly<Record<string, boolean>>
}

export interface ServerStatus {
  readonly state: ServerState
  readonly pid: number | null
  /** Revision of the protocol that it speaks; null while it is not connected. */
  readonly protocol: string | null
  readonly version: string | null
  /** Null until it was asked. */
  readonly tools: readonly OfferedTool[] | null
  /** Tools that cannot be offered, and why. */
  readonly dropped: readonly { readonly name: string, readonly reason: string }[]
  readonly resources: number
  readonly prompts: number
  /** Calls under way. */
  readonly running: number
  readonly error: string | null
  /** Not tried before that; null: with the next call. */
  readonly retryInMs: number | null
  log (count: number): readonly ServerLogEntry[]
}

export interface CallOptions {
  readonly signal: AbortSignal
  readonly progress?: (message: string, done?: number, total?: number) => void
}

/** What a server answers to a call, as it is. */
export interface ToolAnswer {
  readonly content?: readonly unknown[]
  readonly structuredContent?: unknown
  readonly isError?: boolean
  readonly [key: string]: unknown
}

export const sourceKinds = ['oci', 'npm', 'uvx', 'git', 'manifest', 'http'] as const
export type SourceKind = typeof sourceKinds[number]

/** What an address or a spec stands for, before it is installed. */
export interface ResolvedManifest {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly spec: string
  readonly transport: 'stdio' | 'streamable-http'
  readonly args: readonly string[]
  /** How many its manifest tells of. */
  readonly tools: number
  readonly resources: number
  readonly prompts: number
  readonly env_required: readonly string[]
  readonly source_kind: SourceKind
  readonly source_url?: string
  readonly author: string
  readonly verified: boolean
  /** Of a server with a url, unless the operator trusts its host: each connection goes to a public address. */
  readonly network?: 'public'
}

/** Something that can be installed. */
export interface CatalogItem {
  readonly id: string
  readonly name: string
  readonly author: string
  readonly verified: boolean
  readonly description: string
  readonly category: string
  readonly spec: string
  readonly homepage: string | null
}

/** The installed tool servers. Ids that are not installed throw `mcp.not_found`. */
export interface ToolServerService {
  list (): readonly { readonly server: NamedToolServer, readonly status: ServerStatus }[]
  get (id: string): { readonly server: NamedToolServer, readonly status: ServerStatus }
  /** Whether a tool's calls wait for an approval. */
  isGated (id: string, tool: OfferedTool): boolean
  /** Past the back-off. Resolves when it answers; throws why it does not. */
  start (id: string, signal: AbortSignal): Promise<void>
  stop (id: string): Promise<void>
  restart (id: string, signal: AbortSignal): Promise<void>
  /**
   * Throws `mcp.url_required`, `mcp.url_too_long`, `mcp.url_invalid`, `mcp.spec_unsupported`, `mcp.ssrf_blocked`,
   * `mcp.manifest_fetch_failed`.
   */
  resolve (text: string, signal: AbortSignal): Promise<ResolvedManifest>
  catalog (): Promise<readonly CatalogItem[]>
  /** How many a registry has. Throws `mcp.catalog_failed`, and leaves what was known. */
  refreshCatalog (signal: AbortSignal): Promise<number>
}

export const toolServersRef = createServiceRef<ToolServerService>('tool-servers.service')
