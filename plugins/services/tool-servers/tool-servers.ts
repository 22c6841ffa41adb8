import {
  isSvcError, messageOf, svcError, type ConfigSnapshot, type NamedToolServer, type PluginTable, type ToolCatalogue,
  type ToolSource
} from 'svc-gateway/plugin'
import { createAgent } from './http-answer.js'
import { Catalog } from './catalog/catalog.js'
import type { ConnectionDeps } from './connection.js'
import { HostedServer, type HostedServerDeps } from './hosted-server.js'
import type { Learned } from './learned.js'
import { createPublicAgent } from './public-agent.js'
import type { CatalogItem, OfferedTool, ResolvedManifest, ServerStatus, ToolServerService } from './ref.js'
import { resolveServer } from './resolve/resolve.js'
import { ServerLog } from './server-log.js'
import { passedMethods, type PassedMethod } from './server-requests.js'
import type { ToolServerSettings } from './settings.js'

export interface ToolServersDeps extends Omit<ConnectionDeps, 'log' | 'dispatcher'>, Pick<HostedServerDeps, 'events'> {
  readonly tools: ToolCatalogue
  readonly table: PluginTable
  /** For files of its own. */
  readonly folder: () => string
  readonly settings: ToolServerSettings
  readonly warn: (fields: object, message: string) => void
}

/** Servers that are asked for their tools at the same time, after a start of the gateway. */
const LEARN_AT_ONCE = 2

interface Member {
  readonly host: HostedServer
  readonly tell: () => void
  readonly leave: () => void
}

/** The installed tool servers: one host for each record, each a server of the gateway's catalogue of tools. */
export class ToolServers implements ToolServerService {
  readonly #deps: ToolServersDeps
  readonly #catalog: Catalog
  readonly #members = new Map<string, Member>()
  /** Ends of servers whose record is gone. */
  readonly #leaving = new Set<Promise<void>>()
  #agent: ReturnType<typeof createAgent> | null = null
  #publicAgent: ReturnType<typeof createPublicAgent> | null = null
  #toLearn: HostedServer[] = []
  #learning = 0
  #isClosed = false

  constructor (deps: ToolServersDeps) {
    this.#deps = deps
    this.#catalog = new Catalog({
      folder: deps.folder, registry: () => deps.settings.registry, dispatcher: () => this.#agent ??= createAgent()
    })
  }

  /** Takes over what a configuration says; called again at each change. */
  follow ({ toolServers }: ConfigSnapshot): void {
    if (this.#isClosed) return
    for (const [id, member] of this.#members) {
      if (toolServers.has(id)) continue
      this.#members.delete(id)
      member.leave()
      this.#deps.table.delete(id)
      const leaving = this.#close(member.host).finally(() => { this.#leaving.delete(leaving) })
      this.#leaving.add(leaving)
    }
    for (const [id, server] of toolServers) {
      const member = this.#members.get(id)
      if (member === undefined) {
        this.#join(server)
      } else if (member.host.server !== server) {
        void member.host.update(server).catch((error: unknown) => this.#notEnded(id, error))
          .then(() => this.#learnSoon(member.host))
        member.tell()
      }
    }
  }

  list (): readonly { readonly server: NamedToolServer, readonly status: ServerStatus }[] {
    return [...this.#members.values()].map(({ host }) => ({ server: host.server, status: host.status() }))
  }

  get (id: string): { readonly server: NamedToolServer, readonly status: ServerStatus } {
    const host = this.#host(id)
    return { server: host.server, status: host.status() }
  }

  isGated (id: string, tool: OfferedTool): boolean {
    return this.#host(id).isGated(tool)
  }

  async start (id: string, signal: AbortSignal): Promise<void> {
    await this.#host(id).start(signal)
  }

  async stop (id: string): Promise<void> {
    await this.#host(id).stop('an operator stopped it')
  }

  async restart (id: string, signal: AbortSignal): Promise<void> {
    const host = this.#host(id)
    await host.stop('an operator restarts it')
    await host.start(signal)
  }

  resolve (text: string, signal: AbortSignal): Promise<ResolvedManifest> {
    const { clock, settings } = this.#deps
    return resolveServer(text, { clock, trusted: settings.manifest_hosts }, signal)
  }

  catalog (): Promise<readonly CatalogItem[]> {
    return this.#catalog.items()
  }

  refreshCatalog (signal: AbortSignal): Promise<number> {
    return this.#catalog.refresh(signal)
  }

  async close (): Promise<void> {
    this.#isClosed = true
    const members = [...this.#members.values()]
    for (const { leave } of members) leave()
    await Promise.all([...members.map(({ host }) => this.#close(host)), ...this.#leaving])
    await Promise.all([this.#agent?.destroy(), this.#publicAgent?.destroy()])
  }

  /** Never rejects: what does not end is told, and nothing else waits for it. */
  async #close (host: HostedServer): Promise<void> {
    await host.close().catch((error: unknown) => this.#notEnded(host.server.id, error))
  }

  #notEnded (id: string, error: unknown): void {
    this.#deps.warn({ id, err: error }, `the program of tool server ${id} did not end: ${messageOf(error)}`)
  }

  #join (server: NamedToolServer): void {
    const { id } = server
    const listeners = new Set<() => void>()
    const tell = (): void => { for (const listener of listeners) listener() }
    const { clock, config, tools } = this.#deps
    const host = new HostedServer(server, {
      ...this.#deps,
      dispatcher: network => network === 'public' ? this.#publicAgent ??= createPublicAgent() : this.#agent ??= createAgent(),
      log: new ServerLog(clock, text => config.withoutSecrets(text)),
      onChange: tell,
      recall: (id, key) => this.#recall(id, key),
      remember: (id, key, learned) => this.#remember(id, key, learned)
    })
    let leave = (): void => {}
    try {
      leave = tools.addServer(sourceOf(host, listener => {
        listeners.add(listener)
        return () => listeners.delete(listener)
      }))
    } catch (error) {
      this.#deps.warn({ id }, `the tools of tool server ${id} cannot be offered: ${messageOf(error)}`)
    }
    this.#members.set(id, { host, tell, leave })
    this.#learnSoon(host)
  }

  #learnSoon (host: HostedServer): void {
    this.#toLearn.push(host)
    void this.#learnNext()
  }

  async #learnNext (): Promise<void> {
    if (this.#learning >= LEARN_AT_ONCE) return
    const host = this.#toLearn.shift()
    if (host === undefined || this.#isClosed) return
    this.#learning++
    await host.learn()
    this.#learning--
    void this.#learnNext()
  }

  #recall (id: string, key: string): Learned | null {
    const kept = this.#deps.table.get(id) as { readonly key?: string, readonly learned?: Learned } | undefined
    return kept?.key === key ? kept?.learned ?? null : null
  }

  /** A list that is too large to be kept is asked for again at the next start. */
  #remember (id: string, key: string, learned: Learned): void {
    try {
      this.#deps.table.set(id, { key, learned })
    } catch (error) {
      if (!isSvcError(error) || error.code !== 'plugin.state_invalid') throw error
      this.#deps.table.delete(id)
    }
  }

  #host (id: string): HostedServer {
    const member = this.#members.get(id)
    if (member !== undefined) return member.host
    throw svcError('mcp.not_found', `no such tool server: '${id}'; see GET /api/mcp/servers`, { details: { id } })
  }
}

function sourceOf (host: HostedServer, onChange: NonNullable<ToolSource['onChange']>): ToolSource {
  const { id } = host.server
  return {
    id,
    get title () { return host.server.name === '' ? id : host.server.name },
    get description () { return host.server.description },
    get instructions () { return host.instructions },
    get exposure () { return host.server.exposure },
    get parts () { return host.parts },
    tools: () => host.tools.map(tool => ({
      name: tool.name,
      title: tool.title,
      description: tool.description,
      inputSchema: tool.inputSchema,
      outputSchema: tool.outputSchema,
      gated: host.isGated(tool),
      primary: null,
      secrets: [],
      annotations: Object.fromEntries(Object.entries(tool.annotations).map(([hint, value]) => [hint.replace(/Hint$/, ''), value]))
    })),
    async call (name, args, { signal, progress }) {
      const answer = await host.call(name, args, { signal, ...(progress === undefined ? {} : { progress }) })
      // a server may answer anything
      return { ...answer, content: Array.isArray(answer.content) ? answer.content : [] }
    },
    async request (method, params, { signal }) {
      if (!passedMethods.includes(method as PassedMethod)) {
        throw svcError('mcp.tool_failed', `tool server ${id} is not asked for ${method}`, { details: { id } })
      }
      return await host.pass(method as PassedMethod, params, signal)
    },
    onChange
  }
}
