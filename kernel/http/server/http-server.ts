import { createServer, IncomingMessage, ServerResponse, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { errorEnvelope, svcError, type Listener, type ListenerOptions, type ListenerService, type Logger } from '../../contract/index.js'
import { ConnectionTurns, type RequestListener } from './connection-turns.js'
import { answerParserError } from './parser-errors.js'
import { requestIdOf } from './request-id.js'

const ASKED = Symbol('an upgrade was asked for')

/**
 * A request for which only a WebSocket is an upgrade: then `upgrade` is true, and its handler may take the socket of the
 * answer. Clients that try HTTP/2 ask for one as well (`h2c`) and are served as if they had not: Node would take the
 * connection of any upgrade from the parser, and their bodies with it.
 */
class Incoming extends IncomingMessage {
  // accessors, because the parser sets the value before it reads it again
  get upgrade (): boolean {
    return (this as { [ASKED]?: boolean })[ASKED] === true && this.headers.upgrade?.toLowerCase() === 'websocket'
  }

  set upgrade (asked: boolean) {
    (this as { [ASKED]?: boolean })[ASKED] = asked
  }
}

/**
 * The listening sockets: the gateway's own, and further ones that plugins open. They outlive the Fastify instance behind
 * them: when plugins change, a new instance takes over and requests that run on the old one end in peace. Sets no limit
 * on how long an answer may take.
 */
export class HttpServer implements ListenerService {
  readonly raw: Server
  #listener: RequestListener | null = null
  readonly #log: Logger
  readonly #others = new Set<Server>()
  /** Where the gateway's own listens; null while it does not. */
  #host: string | null = null
  /** Connections that Node has let go of. */
  readonly #upgraded = new Set<Socket>()

  constructor (log: Logger) {
    this.#log = log
    this.raw = this.#create((request, response) => { this.#listener?.(request, response) })
  }

  #create (listener: RequestListener): Server {
    const times = { requestTimeout: 0, headersTimeout: 60_000, keepAliveTimeout: 72_000 }
    const options = { IncomingMessage: Incoming, ...times, noDelay: true }
    const server = createServer(options, new ConnectionTurns(listener).take)
    server.timeout = 0
    // a client may end its side with the request and read on: not in the types, documented for `net` alone
    Object.assign(server, { httpAllowHalfOpen: true })
    server.on('clientError', (error, socket) => answerParserError(error, socket, this.#log))
    server.on('checkExpectation', refuseExpectation)
    server.on('upgrade', (request, socket, head) => this.#upgrade(listener, request, socket as Socket, head))
    return server
  }

  /** A request like any other, so that it passes the same guards and routes; whatever is answered closes the connection. */
  #upgrade (listener: RequestListener, request: IncomingMessage, socket: Socket, head: Buffer): void {
    socket.on('error', () => socket.destroy())
    this.#upgraded.add(socket)
    socket.once('close', () => this.#upgraded.delete(socket))
    if (head.length > 0) socket.unshift(head)
    const response = new ServerResponse(request)
    response.shouldKeepAlive = false
    response.assignSocket(socket)
    // the socket of a refused upgrade is not read, so its end would never be seen
    response.once('finish', () => socket.destroySoon())
    listener(request, response)
  }

  /** Requests from now on go to `listener`. */
  serve (listener: RequestListener): void {
    this.#listener = listener
  }

  /** Resolves with the port. Throws an error that names the address and what to do. */
  async listen (host: string, port: number): Promise<number> {
    const taken = await listening(this.raw, host, port, 'take another port with --port')
    this.#host = host
    return taken
  }

  async open ({ port, places = {} }: ListenerOptions): Promise<Listener> {
    if (this.#host === null) throw svcError('gateway.listen_failed', 'the gateway is not listening, so it cannot open another port')
    const server = this.#create((request, response) => {
      const { url = '/' } = request
      if (Object.hasOwn(places, url)) request.url = places[url]
      this.#listener?.(request, response)
    })
    const taken = await listening(server, this.#host, port, 'choose another port')
    this.#others.add(server)
    // the gateway may have begun to stop meanwhile
    if (!this.raw.listening) void this.#end(server)
    return { port: taken, close: () => { void this.#end(server) } }
  }

  /** Stops accepting and drops idle connections. Resolves when the last connection has ended. */
  async close (): Promise<void> {
    await Promise.all([this.raw, ...this.#others].map(server => this.#end(server)))
  }

  #end (server: Server): Promise<void> {
    if (!server.listening) return Promise.resolve()
    return new Promise(resolve => {
      server.close(() => {
        this.#others.delete(server)
        resolve()
      })
      server.closeIdleConnections()
    })
  }

  /** Ends what is still open. */
  closeAll (): void {
    for (const server of [this.raw, ...this.#others]) server.closeAllConnections()
    for (const socket of this.#upgraded) socket.destroy()
  }
}

/** Resolves with the port. @param instead what to do about one that is taken, besides stopping the other program */
function listening (server: Server, host: string, port: number, instead: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void => reject(listenError(error, host, port, instead))
    server.once('error', failed)
    server.listen({ host, port }, () => {
      server.off('error', failed)
      resolve((server.address() as AddressInfo).port)
    })
  })
}

/** `Expect: 100-continue` is met by Node itself; there is no other. */
function refuseExpectation (request: IncomingMessage, response: ServerResponse): void {
  const requestId = requestIdOf(request)
  const refusal = svcError('request.expectation_failed', 'this gateway supports only Expect: 100-continue; remove the header')
  const body = JSON.stringify(errorEnvelope(refusal, requestId))
  response.writeHead(refusal.status, {
    'content-length': Buffer.byteLength(body),
    'content-type': 'application/json; charset=utf-8',
    'x-request-id': requestId,
    'x-should-retry': 'false',
    'connection': 'close'
  })
  response.end(body)
}

function listenError (error: NodeJS.ErrnoException, host: string, port: number, instead: string): Error {
  if (error.code === 'EADDRINUSE') {
    return svcError('gateway.listen_failed', `${host}:${port} is in use by another program; stop it, or ${instead}`,
      { cause: error, details: { host, port } })
  }
  return svcError('gateway.listen_failed', `cannot listen on ${host}:${port} (${error.code ?? error.message})`, { cause: error, details: { host, port } })
}

export function isLoopback (host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.')
}
