import { createServer, IncomingMessage, ServerResponse, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { errorEnvelope, svcError, type Logger } from '../../contract/index.js'
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
 * The listening socket. It outlives the Fastify instance behind it: when plugins change, a new instance takes
 * over and requests that run on the old one end in peace. Sets no limit on how long an answer may take.
 */
export class HttpServer {
  readonly raw: Server
  #listener: RequestListener | null = null
  /** Connections that Node has let go of. */
  readonly #upgraded = new Set<Socket>()

  constructor (log: Logger) {
    const times = { requestTimeout: 0, headersTimeout: 60_000, keepAliveTimeout: 72_000 }
    const options = { IncomingMessage: Incoming, ...times, noDelay: true }
    const turns = new ConnectionTurns((request, response) => { this.#listener?.(request, response) })
    this.raw = createServer(options, turns.take)
    this.raw.timeout = 0
    // a client may end its side with the request and read on: not in the types, documented for `net` alone
    Object.assign(this.raw, { httpAllowHalfOpen: true })
    this.raw.on('clientError', (error, socket) => answerParserError(error, socket, log))
    this.raw.on('checkExpectation', refuseExpectation)
    this.raw.on('upgrade', (request, socket, head) => this.#upgrade(request, socket as Socket, head))
  }

  /** A request like any other, so that it passes the same guards and routes; whatever is answered closes the connection. */
  #upgrade (request: IncomingMessage, socket: Socket, head: Buffer): void {
    socket.on('error', () => socket.destroy())
    this.#upgraded.add(socket)
    socket.once('close', () => this.#upgraded.delete(socket))
    if (head.length > 0) socket.unshift(head)
    const response = new ServerResponse(request)
    response.shouldKeepAlive = false
    response.assignSocket(socket)
    // the socket of a refused upgrade is not read, so its end would never be seen
    response.once('finish', () => socket.destroySoon())
    this.#listener?.(request, response)
  }

  /** Requests from now on go to `listener`. */
  serve (listener: RequestListener): void {
    this.#listener = listener
  }

  /** Resolves with the port. Throws an error that names the address and what to do. */
  listen (host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      const failed = (error: NodeJS.ErrnoException): void => reject(listenError(error, host, port))
      this.raw.once('error', failed)
      this.raw.listen({ host, port }, () => {
        this.raw.off('error', failed)
        resolve((this.raw.address() as AddressInfo).port)
      })
    })
  }

  /** Stops accepting and drops idle connections. Resolves when the last connection has ended. */
  close (): Promise<void> {
    if (!this.raw.listening) return Promise.resolve()
    return new Promise(resolve => {
      this.raw.close(() => resolve())
      this.raw.closeIdleConnections()
    })
  }

  /** Ends what is still open. */
  closeAll (): void {
    this.raw.closeAllConnections()
    for (const socket of this.#upgraded) socket.destroy()
  }
}

/** `Expect: 100-continue` is met by Node itself; there is no other. */
function refuseExpectation (request: IncomingMessage, response: ServerResponse): void {
  const requestId = requestIdOf(request)
  const refusal = svcError('request.expectation_failed', 'the only expectation that this gateway meets is 100-continue; leave the Expect header out')
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

function listenError (error: NodeJS.ErrnoException, host: string, port: number): Error {
  if (error.code === 'EADDRINUSE') {
    return svcError('gateway.listen_failed', `${host}:${port} is in use by another program; stop it, or take another port with --port`,
      { cause: error, details: { host, port } })
  }
  return svcError('gateway.listen_failed', `cannot listen on ${host}:${port} (${error.code ?? error.message})`, { cause: error, details: { host, port } })
}

export function isLoopback (host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.')
}
