import { handled, jsonAnswer, sse, type Clock, type RouteCall, type ToolServerInfo } from 'svc-gateway/plugin'
import { answerBatch, MOST_IN_BATCH } from './batch.js'
import type { Ask } from './ask.js'
import { capabilitiesOf } from './capabilities.js'
import { agentName, identityOf } from './identity.js'
import { MessageQueue } from './message-queue.js'
import type { Methods } from './methods.js'
import {
  errorText, INVALID_REQUEST, isMessage, isObject, isResponse, METHOD_NOT_FOUND, NO_SESSION, RpcError, toRpcError, TRANSPORT,
  type Params, type RpcMessage, type RpcRequest
} from './rpc.js'
import type { SessionStream, SoftSessions } from './soft-sessions.js'

/** Revisions that begin with `initialize`; the newest is what an unknown one is answered with. */
export const legacyVersions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07'] as const
const newest = legacyVersions[0]

/** A call that takes longer becomes a stream where the client takes one: proxies end what is silent. */
const PATIENCE_MS = 5_000

export interface LegacyDeps {
  readonly methods: Methods
  readonly sessions: SoftSessions
  readonly clock: Clock
  readonly version: string
  readonly failed: (error: unknown, requestId: string) => void
}

type Call = Pick<RouteCall, 'request' | 'reply' | 'signal' | 'requestId'>

/** The revisions up to 2025-11-25, without a session that anything is kept of. */
export class LegacyLeg {
  readonly #deps: LegacyDeps

  constructor (deps: LegacyDeps) {
    this.#deps = deps
  }

  async post (call: Call, server: ToolServerInfo, body: unknown): Promise<unknown> {
    const { headers } = call.request
    const session = sessionOf(call)
    if (session !== null && this.#deps.sessions.isEnded(session)) return noSession(call)
    const version = headers['mcp-protocol-version']
    if (version !== undefined && !isVersion(version)) {
      return refuse(call, 400, TRANSPORT, `unsupported protocol version; there are ${legacyVersions.join(', ')}`)
    }
    if (Array.isArray(body)) return await this.#batch(call, server, session, body)
    if (isResponse(body)) return accepted(call)
    if (!isMessage(body)) return refuse(call, 400, INVALID_REQUEST, 'the body is not a JSON-RPC 2.0 message')
    if (body.id === undefined) {
      this.#note(session, body)
      return accepted(call)
    }
    return await this.#answer(call, server, session, { ...body, id: body.id })
  }

  /** A stream for what no request asked for: changes of lists. */
  get (call: Call, server: ToolServerInfo): unknown {
    const { sessions } = this.#deps
    const session = sessionOf(call)
    if (session === null) return refuseMethod(call)
    if (sessions.isEnded(session)) return noSession(call)
    if (!takesEvents(call)) return refuse(call, 406, TRANSPORT, 'this is a stream of events: accept text/event-stream')
    const queue = new MessageQueue()
    const stream: SessionStream = {
      server: server.id,
      tell: method => queue.push({ jsonrpc: '2.0', method }),
      end: () => queue.end()
    }
    if (!sessions.hasRoom(session)) return refuse(call, 503, TRANSPORT, 'too many clients are listening; try again later')
    // a place is taken only by a stream that is read: not by HEAD, nor for a client that has left already
    return sse(async function* (signal) {
      if (!sessions.open(session, stream)) return
      try {
        yield* queue.events(signal)
      } finally {
        sessions.close(session, stream)
      }
    })
  }

  delete (call: Call): unknown {
    const session = sessionOf(call)
    if (session === null) return refuse(call, 400, TRANSPORT, 'ending a session needs its Mcp-Session-Id')
    if (this.#deps.sessions.isEnded(session)) return noSession(call)
    this.#deps.sessions.end(session)
    return { ended: true }
  }

  async #batch (call: Call, server: ToolServerInfo, session: string | null, messages: readonly unknown[]): Promise<unknown> {
    if (messages.length === 0 || messages.length > MOST_IN_BATCH) {
      return refuse(call, 400, INVALID_REQUEST, `a batch holds 1 to ${MOST_IN_BATCH} messages`)
    }
    const texts = await answerBatch(messages, {
      answer: message => this.#text(call, server, session, message, null),
      note: message => this.#note(session, message),
      signal: call.signal
    })
    return texts.length === 0 ? accepted(call) : jsonAnswer(`[${texts.join(',')}]`)
  }

  #note (session: string | null, { method, params = {} }: RpcMessage): void {
    if (method === 'notifications/cancelled') this.#deps.sessions.cancel(session, params.requestId)
  }

  async #answer (call: Call, server: ToolServerInfo, session: string | null, message: RpcRequest): Promise<unknown> {
    if (message.method === 'initialize') {
      const { clientInfo } = message.params ?? {}
      const agent = isObject(clientInfo) ? agentName(clientInfo.name) : null
      void call.reply.header('mcp-session-id', this.#deps.sessions.mint(agent))
    }
    // what is quick is one JSON text; streams are for calls that say something on the way or take long
    if (message.method !== 'tools/call' || !takesEvents(call)) return jsonAnswer(await this.#text(call, server, session, message, null))
    const queue = new MessageQueue()
    let speak = (): void => {}
    const spoken = new Promise<'spoken'>(resolve => { speak = () => resolve('spoken') })
    const patience = this.#deps.clock.setTimer(PATIENCE_MS, () => speak())
    const work = this.#text(call, server, session, message, (method, params) => {
      queue.push({ jsonrpc: '2.0', method, params })
      speak()
    })
    const first = await Promise.race([work, spoken])
    patience.cancel()
    if (first !== 'spoken') return jsonAnswer(first)
    void work.then(text => {
      queue.push(JSON.parse(text) as object)
      queue.end()
    })
    return sse(signal => queue.events(signal))
  }

  /** The answer to a request as JSON. Never rejects. */
  async #text (
    call: Call, server: ToolServerInfo, session: string | null, message: RpcRequest, notify: Ask['notify']
  ): Promise<string> {
    const { id, method, params = {} } = message
    const { sessions, failed } = this.#deps
    const run = sessions.run(session, id, call.signal)
    try {
      const identity = identityOf(call.request.headers, sessions.agentOf(session))
      const ask = { server, identity, signal: run.signal, requestId: call.requestId, notify, origin: null }
      const result = await this.#result(ask, method, params)
      return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${typeof result === 'string' ? result : JSON.stringify(result)}}`
    } catch (error) {
      const known = toRpcError(error)
      if (!(error instanceof RpcError)) failed(error, call.requestId)
      return errorText(id, known.code, known.message, known.data)
    } finally {
      run.done()
    }
  }

  /** As an object, or as JSON that is there already. */
  async #result (ask: Ask, method: string, params: Params): Promise<object | string> {
    const { methods, version } = this.#deps
    switch (method) {
      case 'initialize': return initialized(ask.server, params, version)
      case 'ping': return {}
      case 'tools/list': return `{"tools":${methods.listed(ask)}}`
      case 'tools/call': return await methods.call(ask, params)
      default:
        if (!methods.passes(ask.server, method)) throw new RpcError(METHOD_NOT_FOUND, 'Method not found')
        return await methods.pass(ask, method, params)
    }
  }
}

function initialized (server: ToolServerInfo, { protocolVersion }: Params, version: string): object {
  return {
    protocolVersion: isVersion(protocolVersion) ? protocolVersion : newest,
    capabilities: capabilitiesOf(server),
    serverInfo: serverInfo(server, version),
    ...(server.instructions === null ? {} : { instructions: server.instructions })
  }
}

export function serverInfo ({ id, title }: ToolServerInfo, version: string): { name: string, title: string, version: string } {
  return { name: `svc-${id}`, title, version }
}

function isVersion (value: unknown): boolean {
  return (legacyVersions as readonly unknown[]).includes(value)
}

/** The identities of all clients that bring none are one: null. */
function sessionOf ({ request: { headers } }: Call): string | null {
  const id = headers['mcp-session-id']
  return typeof id === 'string' && /^[\x21-\x7e]{1,200}$/.test(id) ? id : null
}

function takesEvents ({ request: { headers } }: Call): boolean {
  return (headers.accept ?? '').includes('text/event-stream')
}

function noSession (call: Call): unknown {
  return refuse(call, 404, NO_SESSION, 'the session has ended; start with initialize')
}

/** What clients that try for a stream take for "there is none". */
function refuseMethod (call: Call): unknown {
  void call.reply.header('allow', 'POST, DELETE')
  return refuse(call, 405, TRANSPORT, 'POST messages here; a stream needs the Mcp-Session-Id of a session')
}

function accepted ({ reply, requestId }: Call): typeof handled {
  void reply.code(202).header('x-request-id', requestId).send()
  return handled
}

export function refuse ({ reply, requestId }: Pick<Call, 'reply' | 'requestId'>, status: number, code: number, message: string): unknown {
  void reply.code(status).header('x-request-id', requestId).type('application/json').send(errorText(null, code, message))
  return handled
}
