import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { svcError, type AnyRoute, type Clock, type Logger, type ServeSocket, type Timer, type WebSocketBounds } from '../../contract/index.js'
import { Served } from './served-socket.js'

/** Of all routes together: each costs some 10 KB, and what its client has not read yet. */
const MAX_SOCKETS = 512
/** A client that has sent nothing from one ping to the next, not even the answer to it, is gone. */
const PING_MS = 30_000
/** How long a client may take to answer that its socket closes. */
const CLOSING_MS = 2_000

const nothing = Buffer.alloc(0)
const KEY = /^[+/0-9A-Za-z]{22}==$/

export interface SocketCall {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly route: AnyRoute
  readonly bounds: Required<WebSocketBounds>
  readonly serve: ServeSocket
  /** Aborts when the plugin of the route goes. */
  readonly gone: AbortSignal
}

export interface SocketDeps {
  readonly clock: Clock
  readonly log: Logger
}

/** The WebSockets that are open. Loads the code for them with the first. */
export class OpenSockets {
  readonly #open = new Set<Served>()
  /** Signals that are listened to already: one listener serves all sockets of a plugin. */
  readonly #followed = new WeakSet<AbortSignal>()
  #isStopping = false
  #timer: Timer | null = null

  get size (): number { return this.#open.size }

  /** Turns the request into a socket and has it served. Throws the refusal while it is a request still. */
  async accept (call: SocketCall, { clock, log }: SocketDeps): Promise<void> {
    const { WebSocketServer } = await import('ws')
    const { request, reply, route, bounds, serve, gone } = call
    const { raw } = request
    this.#refuseExcess(route, bounds.maxSockets)
    if (gone.aborted) throw svcError('plugin.unavailable', `the plugin behind ${route.url} is being replaced`, { heals: true })
    reply.hijack()
    reply.raw.detachSocket(raw.socket)
    const own = { noServer: true, clientTracking: false, perMessageDeflate: false }
    const options = { ...own, maxPayload: bounds.maxMessageBytes, closeTimeout: CLOSING_MS }
    const server = new WebSocketServer(options)
    server.on('headers', headers => { headers.push(`x-request-id: ${request.id}`) })
    // the code runs at once, or never: a client that has left is no socket
    server.handleUpgrade(raw, raw.socket, nothing, ws => {
      const socket = new Served(ws, raw.socket, { route, bounds, gone })
      this.#follow(socket, clock)
      void socket.serve(serve, request.id, log)
    })
  }

  /** Says to all that the gateway stops; no more are opened. */
  closeAll (): void {
    this.#isStopping = true
    for (const socket of this.#open) socket.close(1001, 'the gateway is stopping')
  }

  #refuseExcess (route: AnyRoute, most: number): void {
    if (this.#isStopping) throw svcError('gateway.stopping', 'the gateway is shutting down', { details: { retry_after_s: 5 } })
    const ofRoute = [...this.#open].filter(socket => socket.place.route === route).length
    if (ofRoute < most && this.#open.size < MAX_SOCKETS) return
    const what = ofRoute < most ? `the gateway has ${MAX_SOCKETS} WebSockets` : `${route.url} has ${most} WebSockets`
    throw svcError('gateway.sockets_full', `${what} open, which is the limit; close some`, { details: { retry_after_s: 5 } })
  }

  #follow (socket: Served, clock: Clock): void {
    const { gone } = socket.place
    this.#open.add(socket)
    void socket.closed.then(() => this.#forget(socket))
    if (this.#timer === null) this.#pingLater(clock)
    if (this.#followed.has(gone)) return
    this.#followed.add(gone)
    gone.addEventListener('abort', () => {
      for (const each of this.#open) if (each.place.gone === gone) each.close(1012, 'the plugin behind this socket was replaced or removed')
    }, { once: true })
  }

  #forget (socket: Served): void {
    this.#open.delete(socket)
    if (this.#open.size > 0) return
    this.#timer?.cancel()
    this.#timer = null
  }

  #pingLater (clock: Clock): void {
    this.#timer = clock.setTimer(PING_MS, () => {
      for (const socket of this.#open) socket.ping()
      this.#pingLater(clock)
    })
  }
}

/** Refuses a request that cannot become a WebSocket. */
export function checkHandshake ({ method, url = '', headers, upgrade }: IncomingMessage & { readonly upgrade?: boolean }, reply: FastifyReply): void {
  const version = headers['sec-websocket-version']
  if (method !== 'GET' || upgrade !== true || version !== '13') {
    void reply.headers({ 'upgrade': 'websocket', 'sec-websocket-version': '13' })
    const path = url.split('?', 1)[0]!.slice(0, 200)
    throw svcError('request.upgrade_required', `${path} is a WebSocket, version 13: open it with ws:// instead of http://`)
  }
  if (KEY.test(headers['sec-websocket-key'] ?? '')) return
  throw svcError('request.handshake_invalid', 'the header Sec-WebSocket-Key is missing, or not 16 bytes in Base64')
}
