import {
  ANONYMOUS_AGENT, svcError, TOOL_SERVER_PATTERN, type AgentFiles, type ApprovalGate, type ToolCaller, type ToolCatalogue,
  type ToolEntry, type ToolOutcome, type ToolServerInfo, type ToolSource, type ToolView, type ToolViewer
} from '../contract/index.js'
import type { Args } from './own-tool.js'
import { noGate, ToolRun, type ToolRunDeps } from './tool-run.js'
import { toolsOf, type MountedTool, type ToolsOfPlugin } from './plugin-tools.js'

/** Lists for so many agents are kept: one may be called anything. */
const MOST_VIEWS = 256

interface KeptSource {
  readonly source: ToolSource
  /** Null until it is read again. */
  entries: ReadonlyMap<string, ToolEntry> | null
  /** Null until it is made again, and for a server that shows no other's tools. */
  view: ToolView | null
}

/** Tools of plugins, routes and sources as one catalogue. */
export class Tools implements ToolCatalogue {
  readonly #deps: ToolRunDeps
  readonly #run: ToolRun
  #plugins: readonly ToolsOfPlugin[] = []
  /** Made at the first read: the schemas of all tools cost more than the rest of a start of plugins. */
  #mounted: ReadonlyMap<string, ReadonlyMap<string, MountedTool>> | null = null
  readonly #sources = new Map<string, KeptSource>()
  #agents: AgentFiles | null = null
  #gate: ApprovalGate | null = null
  readonly #listeners = new Set<() => void>()
  readonly #lists = new Map<string, readonly ToolEntry[]>()

  constructor (deps: ToolRunDeps) {
    this.#deps = deps
    this.#run = new ToolRun(deps)
  }

  /** Plugins came or went. */
  use (plugins: readonly ToolsOfPlugin[]): void {
    this.#plugins = plugins
    this.#mounted = null
    this.#changed()
  }

  servers (): readonly ToolServerInfo[] {
    const ids = new Set([...this.#own.keys(), ...this.#sources.keys()])
    return [...ids].sort().map(id => this.server(id)!)
  }

  server (id: string): ToolServerInfo | null {
    const source = this.#sources.get(id)?.source ?? null
    if (source === null && !this.#own.has(id)) return null
    return {
      id,
      title: source?.title ?? id,
      description: source?.description ?? `Tools of the plugins of this gateway: ${id}`,
      instructions: source?.instructions ?? null,
      parts: source?.parts ?? {},
      source
    }
  }

  list (server: string, { agent }: ToolViewer): readonly ToolEntry[] {
    const key = this.#agents === null ? server : `${server} ${agent ?? ''}`
    const known = this.#lists.get(key)
    if (known !== undefined) return known
    const list = this.#viewOf(server)?.list({ agent }) ?? this.#seenBy(agent ?? ANONYMOUS_AGENT, this.#entriesOf(server))
    if (this.#lists.size >= MOST_VIEWS) this.#lists.clear()
    this.#lists.set(key, list)
    return list
  }

  find (server: string, name: string): ToolEntry | null {
    return this.#own.get(server)?.get(name)?.tool.entry ?? this.#entriesOfSource(server).get(name) ??
      this.#viewOf(server)?.find(name) ?? null
  }

  requireListed (server: string, { agent }: ToolViewer): void {
    const name = agent ?? ANONYMOUS_AGENT
    // no tool is called nothing, so what is said of one is said of its server
    if (this.#agents?.classify(name, server, '') !== 'unknown_server') return
    throw svcError('mcp.tool_not_allowed', `agent '${name}' may not use ${server}: agents/${name.toLowerCase()}.toml does not list it`,
      { details: { server, agent: name } })
  }

  all (): readonly ToolEntry[] {
    return this.servers().flatMap(({ id }) => this.#entriesOf(id))
  }

  async call (server: string, name: string, args: Args, caller: ToolCaller): Promise<ToolOutcome> {
    const view = this.#viewOf(server)
    const target = view?.target(name, args) ?? null
    // once only: the target is no view
    if (target !== null) return await this.#call(target.server, target.name, target.args, caller)
    // a view's own tools show and call what the file allows: it need not list them
    return await this.#call(server, name, args, caller, view === null)
  }

  async #call (server: string, name: string, args: Args, caller: ToolCaller, hasFile = true): Promise<ToolOutcome> {
    return await this.#run.call({
      server, name, args, caller,
      entry: this.find(server, name),
      file: hasFile ? this.#agents?.classify(caller.agent ?? ANONYMOUS_AGENT, server, name) ?? null : null,
      own: this.#own.get(server)?.get(name) ?? null,
      source: this.#sources.get(server)?.source ?? null,
      gate: this.#gate
    })
  }

  async settled (approvalId: string, signal: AbortSignal): Promise<ToolOutcome> {
    if (this.#gate === null) throw noGate('the call')
    return await this.#gate.settled(approvalId, signal)
  }

  async run (
    server: string, name: string, args: Args, caller: ToolCaller & { readonly approvedBy: string }
  ): Promise<ToolOutcome> {
    return await this.#run.call({
      server, name, args, caller,
      entry: this.find(server, name),
      own: this.#own.get(server)?.get(name) ?? null,
      source: this.#sources.get(server)?.source ?? null,
      approvedBy: caller.approvedBy
    })
  }

  addServer (source: ToolSource): () => void {
    const { id } = source
    if (!TOOL_SERVER_PATTERN.test(id)) {
      throw svcError('plugin.conflict', `'${id}' is not a valid name of a tool server: a to z, 0 to 9, _ and -, at most 64`)
    }
    const isTaken = this.#sources.has(id) || (source.tools !== undefined && this.#own.has(id))
    if (isTaken) throw svcError('plugin.conflict', `tool server '${id}' already exists; choose another id`)
    const off = source.onChange?.(() => {
      const kept = this.#sources.get(id)
      if (kept?.source !== source) return
      kept.entries = null
      this.#changed()
    }) ?? (() => {})
    this.#sources.set(id, { source, entries: null, view: null })
    this.#changed()
    return () => {
      if (this.#sources.get(id)?.source !== source) return
      this.#sources.delete(id)
      off()
      this.#changed()
    }
  }

  useGate (gate: ApprovalGate): () => void {
    this.#gate = gate
    return () => { if (this.#gate === gate) this.#gate = null }
  }

  useAgents (files: AgentFiles): () => void {
    this.#agents = files
    const off = files.onChange(() => this.#changed())
    this.#changed()
    return () => {
      off()
      if (this.#agents !== files) return
      this.#agents = null
      this.#changed()
    }
  }

  onChange (listener: () => void): () => void {
    // an own function for each registration: one may register twice
    const own = (): void => listener()
    this.#listeners.add(own)
    return () => { this.#listeners.delete(own) }
  }

  get #own (): ReadonlyMap<string, ReadonlyMap<string, MountedTool>> {
    return this.#mounted ??= toolsOf(this.#plugins)
  }

  #viewOf (server: string): ToolView | null {
    const kept = this.#sources.get(server)
    if (kept?.source.view === undefined) return null
    return kept.view ??= kept.source.view()
  }

  #entriesOf (server: string): readonly ToolEntry[] {
    const offered = [...this.#own.get(server)?.values() ?? []].filter(({ tool }) => tool.isOffered?.() !== false)
    const own = offered.map(({ tool }) => tool.entry)
    return Object.freeze([...own, ...this.#entriesOfSource(server).values()].sort((a, b) => a.name < b.name ? -1 : 1))
  }

  #entriesOfSource (server: string): ReadonlyMap<string, ToolEntry> {
    const kept = this.#sources.get(server)
    if (kept === undefined) return new Map()
    const { source } = kept
    return kept.entries ??= new Map((source.tools?.() ?? []).map(tool => [tool.name, { ...tool, server, owner: source.id }]))
  }

  #seenBy (agent: string, all: readonly ToolEntry[]): readonly ToolEntry[] {
    const agents = this.#agents
    if (agents === null) return all
    const seen = all.flatMap(entry => {
      const file = agents.classify(agent, entry.server, entry.name)
      if (file === null || file === 'allow') return [entry]
      return file === 'gated' ? [entry.gated ? entry : { ...entry, gated: true, outputSchema: null }] : []
    })
    return seen.length === all.length && seen.every((entry, i) => entry === all[i]) ? all : Object.freeze(seen)
  }

  #changed (): void {
    this.#lists.clear()
    for (const kept of this.#sources.values()) kept.view = null
    for (const listener of this.#listeners) {
      try {
        listener()
      } catch (error) {
        this.#deps.log.error({ err: error }, 'a listener for changes of tools failed')
      }
    }
  }
}
