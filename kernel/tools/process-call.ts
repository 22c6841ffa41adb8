import { svcError, type AnyRoute, type Logger, type RouteCall, type ToolCaller } from '../contract/index.js'

interface ProcessCallParts {
  readonly params: unknown
  readonly query: unknown
  readonly body: unknown
  readonly requestId: string
  readonly caller: ToolCaller
  readonly log: Logger
  readonly route: AnyRoute
}

/**
 * The call of a route that came over no socket. `request` has an address and no headers; on `reply` a handler may set status
 * and headers, which are not read. Whatever else it wants of them is refused by name.
 */
export class ProcessCall implements RouteCall {
  readonly params: unknown
  readonly query: unknown
  readonly body: unknown
  readonly requestId: string
  readonly actor: string
  readonly signal: AbortSignal
  readonly progress?: NonNullable<RouteCall['progress']>
  readonly log: Logger
  readonly #route: AnyRoute

  constructor ({ params, query, body, requestId, caller, log, route }: ProcessCallParts) {
    this.params = params
    this.query = query
    this.body = body
    this.requestId = requestId
    this.actor = caller.actor
    this.signal = caller.signal
    if (caller.progress !== undefined) this.progress = caller.progress
    this.log = log
    this.#route = route
  }

  get request (): RouteCall['request'] {
    const { method, url } = this.#route
    return only({ id: this.requestId, method, url, headers: {}, params: this.params, query: this.query, body: this.body }, 'request', url)
  }

  get reply (): RouteCall['reply'] {
    const same = (): RouteCall['reply'] => reply
    const parts = { statusCode: 200, sent: false, code: same, status: same, header: same, headers: same, type: same }
    const reply = only<RouteCall['reply']>(parts, 'reply', this.#route.url)
    return reply
  }
}

function only<T> (parts: object, what: string, url: string): T {
  return new Proxy(parts, {
    get (target, key, receiver) {
      if (key in target || typeof key === 'symbol' || key === 'then') return Reflect.get(target, key, receiver) as unknown
      throw svcError('mcp.tool_unfit', `the route ${url} uses ${what}.${key}, so it cannot be called as a tool`)
    }
  }) as T
}
