import type * as sdk from '@modelcontextprotocol/server'
import type { McpHttpHandler, Server, ServerContext } from '@modelcontextprotocol/server'
import { handled, type RouteCall, type ToolServerInfo, type ToolWire } from 'svc-gateway/plugin'
import type { Ask } from './ask.js'
import { capabilitiesOf } from './capabilities.js'
import { agentName, identityOf } from './identity.js'
import { refuse, serverInfo } from './legacy-leg.js'
import { passageMethods, type Methods, type PassageMethod } from './methods.js'
import { isObject, NO_RESOURCE, RpcError, toRpcError, TRANSPORT, type Params } from './rpc.js'

/** Streams that wait for changes, of each server. */
const MOST_LISTENING = 64
/** What the package answers when a request was ended. */
const GONE = 499
const LIST_TTL_MS = 60_000

type Sdk = typeof sdk
type Call = Pick<RouteCall, 'request' | 'reply' | 'signal' | 'requestId'>

export interface ModernDeps {
  readonly methods: Methods
  readonly version: string
  readonly serverOf: (id: string) => ToolServerInfo | null
  readonly failed: (error: unknown, requestId: string) => void
}

/** The revisions from 2026-07-28 on, spoken by the protocol's own package. It is loaded with the first client that needs it. */
export class ModernLeg {
  readonly #deps: ModernDeps
  #sdk: Promise<Sdk> | null = null
  readonly #handlers = new Map<string, McpHttpHandler>()
  readonly #calls = new WeakMap<Request, Call>()
  /** What is to be listed, as JSON. */
  readonly #lists = new WeakMap<Call, string>()
  #isClosed = false

  constructor (deps: ModernDeps) {
    this.#deps = deps
  }

  /** Whether the older revisions are meant after all, as the protocol's package judges it. */
  async isLegacy (call: Call, body: unknown): Promise<boolean> {
    const { classifyInboundRequest } = await this.#load()
    const { headers } = call.request
    const header = (name: string): string | undefined => {
      const value = headers[name]
      return typeof value === 'string' ? value : undefined
    }
    const [version, method, name] = [header('mcp-protocol-version'), header('mcp-method'), header('mcp-name')]
    return classifyInboundRequest({
      httpMethod: 'POST',
      ...(version === undefined ? {} : { protocolVersionHeader: version }),
      ...(method === undefined ? {} : { mcpMethodHeader: method }),
      ...(name === undefined ? {} : { mcpNameHeader: name }),
      body
    }).kind === 'legacy'
  }

  async post (call: Call, server: ToolServerInfo, body: unknown): Promise<unknown> {
    const sdk = await this.#load()
    const request = webRequest(call)
    this.#calls.set(request, call)
    const response = await this.#handlerOf(sdk, server).fetch(request, { parsedBody: body })
    if (call.signal.aborted) {
      // the client has left, and an answer that nothing can carry is none
      call.reply.hijack()
      return handled
    }
    if (response.status === GONE) return refuse(call, 503, TRANSPORT, 'the gateway is shutting down')
    void call.reply.header('x-request-id', call.requestId)
    const isText = !(response.headers.get('content-type') ?? '').includes('event-stream')
    // a whole text is not worth a stream
    if (isText) {
      const text = this.#listed(call, await response.text())
      void call.reply.code(response.status).headers(Object.fromEntries(response.headers)).send(text)
    } else {
      void call.reply.send(response)
    }
    return handled
  }

  /**
   * The package reads and writes a whole list for each request, so it is given an empty one, and the list goes where that
   * stands: in JSON, quotes that are not escaped are no part of any text.
   */
  #listed (call: Call, text: string): string {
    const json = this.#lists.get(call)
    return json === undefined ? text : text.replace('"tools":[]', () => `"tools":${json}`)
  }

  /** Listeners of these servers hear that lists changed; what is gone is closed. */
  tell (): void {
    for (const [id, { notify, close }] of this.#handlers) {
      if (this.#deps.serverOf(id) === null) {
        this.#handlers.delete(id)
        void close()
        continue
      }
      notify.toolsChanged()
      notify.resourcesChanged()
      notify.promptsChanged()
    }
  }

  async close (): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#handlers.values()].map(({ close }) => close()))
    this.#handlers.clear()
  }

  #load (): Promise<Sdk> {
    return this.#sdk ??= import('@modelcontextprotocol/server')
  }

  #handlerOf (sdk: Sdk, { id }: ToolServerInfo): McpHttpHandler {
    let handler = this.#handlers.get(id)
    if (handler === undefined) {
      handler = sdk.createMcpHandler(({ requestInfo }) => this.#serverFor(sdk, id, this.#calls.get(requestInfo!)!), {
        legacy: 'reject', maxSubscriptions: MOST_LISTENING
      })
      if (!this.#isClosed) this.#handlers.set(id, handler)
    }
    return handler
  }

  /** One for each request: answers of one client never reach another. */
  #serverFor (sdk: Sdk, id: string, call: Call): Server {
    const { methods, version, serverOf } = this.#deps
    const info = serverOf(id)
    if (info === null) throw new Error(`the tool server ${id} is gone`)
    const hint = { ttlMs: LIST_TTL_MS, cacheScope: 'private' } as const
    // the low-level one: it lists ready schemas and hands on what tools answer
    const server = new sdk.Server(serverInfo(info, version), {
      capabilities: capabilitiesOf(info),
      ...(info.instructions === null ? {} : { instructions: info.instructions }),
      cacheHints: { 'tools/list': hint, 'server/discover': hint }
    })
    const ask = (ctx: ServerContext): Ask => ({
      server: info,
      identity: identityOf(call.request.headers, agentName(server.getClientVersion()?.name)),
      signal: AbortSignal.any([ctx.mcpReq.signal, call.signal]),
      requestId: call.requestId,
      notify: takesEvents(call)
        ? (method, params) => {
            // log lines are for who asked for them
            if (method === 'notifications/message' && !asksForLog(ctx, sdk)) return
            void ctx.mcpReq.notify({ method, params }).catch(() => {})
          }
        : null,
      wire: wireOf(ctx, server),
      origin: originOf(call)
    })
    const answering = <T>(work: (ask: Ask, params: Params) => T | Promise<T>) =>
      async (request: { readonly params?: unknown }, ctx: ServerContext): Promise<never> => {
        const { _meta: meta } = ctx.mcpReq
        const params = { ...isObject(request.params) ? request.params : {}, ...(meta === undefined ? {} : { _meta: meta }) }
        try {
          return await work(ask(ctx), params) as never
        } catch (error) {
          if (!(error instanceof RpcError)) this.#deps.failed(error, call.requestId)
          throw protocolError(sdk, toRpcError(error), params)
        }
      }
    const has = (method: PassageMethod): boolean => methods.passes(info, method)
    server.setRequestHandler('tools/list', answering(asked => {
      this.#lists.set(call, methods.listed(asked))
      return { tools: [] }
    }))
    server.setRequestHandler('tools/call', answering((asked, params) => methods.call(asked, params)))
    for (const method of passageMethods.filter(has)) {
      server.setRequestHandler(method, answering((asked, params) => methods.pass(asked, method, params)))
    }
    return server
  }
}

function asksForLog ({ mcpReq: { _meta: meta, envelope } }: ServerContext, sdk: Sdk): boolean {
  return sdk.LOG_LEVEL_META_KEY in { ...meta, ...envelope }
}

function wireOf (ctx: ServerContext, server: Server): Omit<ToolWire, 'notify'> {
  const { inputResponses } = ctx.mcpReq
  const requestState = ctx.mcpReq.requestState()
  return {
    clientCapabilities: (server.getClientCapabilities() ?? {}) as Readonly<Record<string, unknown>>,
    ...(inputResponses === undefined ? {} : { inputResponses }),
    ...(typeof requestState === 'string' ? { requestState } : {})
  }
}

function protocolError (sdk: Sdk, { code, message, data }: RpcError, params: Params): Error {
  if (code === NO_RESOURCE) return new sdk.ResourceNotFoundError(String(params.uri), message)
  return new sdk.ProtocolError(code, message, data)
}

function originOf ({ request: { protocol, headers: { host } } }: Call): string | null {
  return host === undefined ? null : `${protocol}://${host}`
}

/** Either kind of answer is made for who takes both; a client that takes no events is sent none. */
function webRequest ({ request, signal }: Call): Request {
  const headers = new Headers({ 'content-type': 'application/json', 'accept': 'application/json, text/event-stream' })
  for (const [name, value] of Object.entries(request.headers)) {
    if (typeof value === 'string' && name.startsWith('mcp-')) headers.set(name, value)
  }
  return new Request(`http://localhost${request.url}`, { method: 'POST', headers, signal })
}

function takesEvents ({ request: { headers: { accept = '' } } }: Call): boolean {
  return accept.includes('text/event-stream') || accept.includes('*/*')
}
