import {
  type ActivityLog, type ActivityNote, type Clock, type ConfigService, type EventBus, type GatewayInfo, type RouteCall,
  type ToolCatalogue
} from 'svc-gateway/plugin'
import type { ToolServerService } from '../../services/tool-servers/ref.js'
import { mcpError } from './errors.js'
import type { ServerRow } from './schemas.js'
import { bundledRow, installedRow, type RowContext } from './server-row.js'
import { ToolCalls } from './tool-calls.js'

export interface McpServices {
  readonly activity: ActivityLog
  readonly clock: Clock
  readonly config: ConfigService
  readonly events: EventBus
  readonly info: GatewayInfo
  readonly servers: ToolServerService
  readonly tools: ToolCatalogue
}

/** What the routes of this group share. */
export class McpApi {
  readonly services: McpServices
  readonly calls: ToolCalls

  constructor (services: McpServices) {
    this.services = services
    this.calls = new ToolCalls(services.events, services.activity, () => services.clock.now())
  }

  /** The gateway's own first. */
  list (): ServerRow[] {
    const context = this.#context()
    return [
      ...this.#bundled().map(server => bundledRow(server, context)),
      ...this.services.servers.list().map(({ server, status }) => installedRow(server, status, context))
    ]
  }

  /** Throws `mcp.not_found`. */
  row (id: string): ServerRow {
    const own = this.#bundled().find(server => isNamed(server.id, id))
    if (own !== undefined) return bundledRow(own, this.#context())
    const { server, status } = this.services.servers.get(id)
    return installedRow(server, status, this.#context())
  }

  /** Throws `mcp.bundled` for a server of the gateway itself, and `mcp.not_found`. */
  requireInstalled (id: string): void {
    if (this.#bundled().some(server => isNamed(server.id, id))) {
      throw mcpError('mcp.bundled', `${id} is a tool server of the gateway itself, which cannot be changed or removed`, { details: { id } })
    }
    this.services.servers.get(id)
  }

  audited<T> (
    { actor, requestId }: Pick<RouteCall, 'actor' | 'requestId'>, verb: string, id: string,
    work: (note: (learned: ActivityNote) => void) => Promise<T>
  ): Promise<T> {
    return this.services.activity.audited({ category: 'mcp', action: `mcp.${verb}`, target: id, actor, request_id: requestId }, work)
  }

  #bundled (): ReturnType<ToolCatalogue['servers']> {
    const installed = new Set(this.services.servers.list().map(({ server }) => server.id))
    return this.services.tools.servers().filter(({ id }) => !installed.has(id))
  }

  #context (): RowContext {
    const { info, tools } = this.services
    return {
      baseUrl: info.baseUrl,
      version: info.version,
      lately: this.calls.lately(),
      tools: id => tools.list(id, { agent: null })
    }
  }
}

function isNamed (server: string, id: string): boolean {
  return id === server || id === `svc-${server}`
}
