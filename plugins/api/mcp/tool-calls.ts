import type { ActivityLog, EventBus, GatewayEvent } from 'svc-gateway/plugin'

const MINUTE_MS = 60_000
const INVOKED = 'mcp.tool.invoked'
/** What rows of calls are looked through for, at most. */
const ROWS = 5_000

/** Who called which tool server, as events and audit rows tell. */
export class ToolCalls {
  readonly #events: EventBus
  readonly #activity: ActivityLog
  readonly #now: () => number

  constructor (events: EventBus, activity: ActivityLog, now: () => number) {
    this.#events = events
    this.#activity = activity
    this.#now = now
  }

  /** Calls of the last minute, and clients of the last five. */
  lately (): (server: string) => { readonly rpm: number, readonly connected: readonly string[] } {
    const { events } = this.#events.list({ type: INVOKED, limit: 500 })
    const now = this.#now()
    const young = events.filter(({ ts }) => now - Date.parse(ts) <= 5 * MINUTE_MS)
    return server => {
      const own = young.filter(({ data }) => data.server === server)
      return {
        rpm: own.filter(({ ts }) => now - Date.parse(ts) <= MINUTE_MS).length,
        connected: [...new Set(own.map(({ data }) => String(data.client)))].sort()
      }
    }
  }

  clients (): ReadonlyArray<{ readonly id: string, readonly since: string, readonly servers: readonly string[] }> {
    const clients = new Map<string, { since: string, servers: Set<string> }>()
    for (const { actor, ts, target } of this.#activity.list({ action: INVOKED, limit: ROWS })) {
      const id = actor.replace(/^mcp:/, '')
      const known = clients.get(id) ?? { since: ts, servers: new Set() }
      known.since = ts
      known.servers.add(target.split('/')[0]!)
      clients.set(id, known)
    }
    return [...clients].map(([id, { since, servers }]) => ({ id, since, servers: [...servers].sort() }))
  }

  /** The last calls of one server, oldest first. */
  of (server: string, limit: number): readonly { readonly ts: string, readonly message: string }[] {
    return this.#activity.list({ action: INVOKED, limit: ROWS }).filter(({ target }) => target.startsWith(`${server}/`)).slice(0, limit)
      .map(({ ts, message, actor, target }) => ({ ts, message: message === '' ? `${actor} called ${target}` : message })).reverse()
  }

  /** Those of the last minute first, then as they come. */
  async* follow (signal: AbortSignal): AsyncGenerator<GatewayEvent> {
    const { events } = this.#events.list({ limit: 500 })
    const first = events.find(({ ts }) => this.#now() - Date.parse(ts) <= MINUTE_MS)
    const since = first === undefined ? {} : { since: first.id - 1 }
    for await (const event of this.#events.subscribe(since, signal)) {
      if (event.type === INVOKED || event.type.startsWith('approval.')) yield event
    }
  }
}
