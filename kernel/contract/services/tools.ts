import type { SvcError } from '../errors/errors.js'
import type { ToolAnnotations } from '../tool.js'

export type JsonSchema = Readonly<Record<string, unknown>>

/** A tool as it is listed. The schemas are made once: the same objects as long as the tool is the same. */
export interface ToolEntry {
  readonly server: string
  readonly name: string
  readonly title: string | null
  readonly description: string
  readonly inputSchema: JsonSchema
  /** Shape of the results that come as data; null where there is none. */
  readonly outputSchema: JsonSchema | null
  readonly gated: boolean
  /** Argument that says what a call is about; null for all of them. */
  readonly primary: string | null
  /** Arguments that are shown nowhere. */
  readonly secrets: readonly string[]
  /** Arguments left out of events and audit rows. */
  readonly unwritten?: readonly string[]
  readonly annotations: ToolAnnotations
  /** Plugin that brings it, or the source (`ToolSource.id`). */
  readonly owner: string
}

/** A result in the words of the protocol, from a server that speaks it. Handed on as it is, with whatever else is in it. */
export interface ToolContent {
  readonly content: readonly unknown[]
  readonly structuredContent?: unknown
  readonly isError?: boolean
  readonly _meta?: unknown
}

/** What a server that speaks the protocol by itself needs of a call besides its arguments. */
export interface ToolWire {
  /** A notification that belongs to this call, to its client alone. Dropped where the client cannot take it. Never throws. */
  readonly notify: (method: string, params: Readonly<Record<string, unknown>>) => void
  /** What the client declared; empty where it is not known. */
  readonly clientCapabilities: Readonly<Record<string, unknown>>
  /** What the client answers to an earlier result that asked it for input, as it came. */
  readonly inputResponses?: Readonly<Record<string, unknown>>
  readonly requestState?: string
}

export type ToolOutcome =
  /** `value` is JSON; what a route of another server would answer. */
  | { readonly kind: 'done', readonly value: unknown }
  | { readonly kind: 'content', readonly content: ToolContent }
  /** An operator has to approve it first; nothing ran. */
  | { readonly kind: 'pending', readonly approvalId: string, readonly state: string }
  | { readonly kind: 'failed', readonly error: SvcError }

export interface ToolCaller {
  /** For audit rows: `mcp:<agent>`. */
  readonly actor: string
  /** Null when it gave no name. */
  readonly agent: string | null
  readonly private?: boolean
  readonly signal: AbortSignal
  readonly requestId?: string
  readonly progress?: (message: string, done?: number, total?: number) => void
  /** Null and undefined: the call came some other way than by the protocol. */
  readonly wire?: ToolWire | null
}

/** Who lists: an agent with a file sees what it allows. */
export interface ToolViewer {
  readonly agent: string | null
}

/** A passage for requests of the protocol that are about no tool: `resources/read`, `prompts/get`. */
export type ToolPassage = (method: string, params: Readonly<Record<string, unknown>>, caller: ToolCaller) => Promise<unknown>

/** Parts of the protocol besides tools that a server has. */
export interface ToolServerParts {
  readonly resources?: boolean
  /** `resources/subscribe` is answered. */
  readonly subscriptions?: boolean
  readonly prompts?: boolean
  readonly logging?: boolean
  readonly completions?: boolean
}

export interface ToolServerInfo {
  /** Segment of `/mcp/<id>`. */
  readonly id: string
  readonly title: string
  readonly description: string
  /** For a model: how the server is to be used. */
  readonly instructions: string | null
  readonly parts: ToolServerParts
  /** Null for a server whose tools all come from plugins. */
  readonly source: ToolSource | null
}

/** The tools of other servers as they are offered by one that has none but its own. Names mean the same tool for every viewer. */
export interface ToolView {
  readonly list: (viewer: ToolViewer) => readonly ToolEntry[]
  readonly find: (name: string) => ToolEntry | null
  /**
   * The call of another server, which is no view, that a call means; everything about it counts: the agent's file, approvals,
   * what is written down. Null: it means none, and a plugin's tool of this server answers.
   */
  readonly target: (name: string, args: Readonly<Record<string, unknown>>) => ToolTarget | null
}

export interface ToolTarget {
  readonly server: string
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
}

/** Where a server is offered: at `/mcp/<id>`, among the tools of all servers, to chats that name it. */
export interface ToolExposure {
  readonly direct: boolean
  readonly all: boolean
  readonly chats: boolean
}

/**
 * A tool server that comes and goes while the gateway runs, or words and resources for one whose tools come from plugins.
 * Its tools are called with arguments as they came: it validates them itself.
 */
export interface ToolSource {
  readonly id: string
  /** Left out: everywhere. Read again like `tools`. */
  readonly exposure?: ToolExposure
  readonly title: string
  readonly description: string
  readonly instructions?: string | null
  readonly parts?: ToolServerParts
  /** Read again after each change that `onChange` told; must not wait. Names are handed on as they are. */
  readonly tools?: () => ReadonlyArray<Omit<ToolEntry, 'server' | 'owner'>>
  /** Throws a `SvcError` for what failed before the tool answered. Must end when the signal aborts. */
  readonly call?: (name: string, args: Readonly<Record<string, unknown>>, caller: ToolCaller) => Promise<ToolContent>
  readonly request?: ToolPassage
  /** How many resources and prompts there are at the moment. Left out: none are counted. */
  readonly counts?: () => { readonly resources: number, readonly prompts: number }
  /** For a server that offers the tools of others. Made anew after each change of the catalogue; must not wait. */
  readonly view?: () => ToolView
  /** Tells changes of tools, resources and prompts; returns what unregisters the listener. */
  readonly onChange?: (listener: () => void) => () => void
}

export type ToolClass = 'allow' | 'gated' | 'blocked' | 'unknown_server' | 'unknown_tool'

/** What files say of agents. */
export interface AgentFiles {
  /**
   * Null: the agent has no file, and the server's own catalogue counts. Agents that give no name are `anonymous`. Quick.
   */
  classify (agent: string, server: string, tool: string): ToolClass | null
  /** Tells that another answer of `classify` is possible; returns what unregisters the listener. */
  onChange (listener: () => void): () => void
}

export interface ApprovalRequest {
  readonly server: string
  readonly tool: string
  /** Valid for the tool, and whole: secrets are in it. */
  readonly args: Readonly<Record<string, unknown>>
  /** Arguments that may be shown nowhere. */
  readonly secrets: readonly string[]
  /** Arguments that only an operator may see, and only until the call is decided. */
  readonly unwritten: readonly string[]
  /** Value of the argument that the call is about, as text; null when the tool names none or it is missing. */
  readonly primary: string | null
  readonly actor: string
  readonly agent: string | null
  /** What it writes is for this agent alone. */
  readonly private: boolean
  /** The agent's own file gates the tool, whether or not its server does. */
  readonly byFile: boolean
}

/** Where gated calls wait. */
export interface ApprovalGate {
  /** `go`: run it now, by a policy or an approval that is there already. Throws a `SvcError` when it is refused. */
  ask (request: ApprovalRequest): Promise<
    | { readonly kind: 'pending', readonly id: string, readonly state: string }
    | { readonly kind: 'go', readonly id?: string }
  >
  /**
   * How a call that waits ended; `failed` for one that was denied, or expired. Rejects with the signal's reason, and with
   * `approvals.not_found`.
   */
  settled (id: string, signal: AbortSignal): Promise<ToolOutcome>
}

/** Every tool of every server: those of plugins and routes, and those of sources. */
export interface ToolCatalogue {
  servers (): readonly ToolServerInfo[]
  server (id: string): ToolServerInfo | null
  /**
   * In a stable order. The same array as long as nothing changes for the viewer. An agent with a file gets the tools that
   * it may call, with those that the file gates marked as gated.
   */
  list (server: string, viewer: ToolViewer): readonly ToolEntry[]
  find (server: string, name: string): ToolEntry | null
  /**
   * Throws `mcp.tool_not_allowed` for an agent whose file does not list the server: it may ask that for nothing, resources and
   * prompts included.
   */
  requireListed (server: string, viewer: ToolViewer): void
  /** Every tool of every server, for every agent. */
  all (): readonly ToolEntry[]
  /**
   * Validates, asks the agent's file and the gate, runs, and writes the call down (`mcp.tool.invoked`, as an event and as an
   * audit row, without secrets). Never rejects. Ends when the signal aborts; what the tool began may go on.
   */
  call (server: string, name: string, args: Readonly<Record<string, unknown>>, caller: ToolCaller): Promise<ToolOutcome>
  /** How a call ended that was answered `pending`, once it has: `ApprovalGate.settled`. */
  settled (approvalId: string, signal: AbortSignal): Promise<ToolOutcome>
  /** The same past the agent's file and the gate: what an approval does. */
  run (
    server: string, name: string, args: Readonly<Record<string, unknown>>, caller: ToolCaller & { readonly approvedBy: string }
  ): Promise<ToolOutcome>
  /** Throws `plugin.conflict` when the id is taken. Returns what takes the server away again. */
  addServer (source: ToolSource): () => void
  /** The last one counts. Returns what takes it away. Without a gate, gated calls are 503 `approvals.unavailable`. */
  useGate (gate: ApprovalGate): () => void
  useAgents (files: AgentFiles): () => void
  /** Tells that lists, servers or permissions changed; returns what unregisters the listener. */
  onChange (listener: () => void): () => void
}
