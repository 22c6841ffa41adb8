import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { errorEnvelope, svcError, type Logger } from '../contract/index.js'
import { ConnectionTurns, type RequestListener } from './connection-turns.js'
import { answerParserError } from './parser-errors.js'
import { requestIdOf } from './request-id.js'

/**
 * The listening socket. It outlives the Fastify instance behind it: when plugins change, a new instance takes
 * over and requests that run on the old one end in peace. Sets no limit on how long an answer may take.
 */
export class HttpServer {
  readonly raw: Server
  #listener: RequestListener | null = null

  constructor (log: Logger) {
    const options = { requestTimeout: 0, headersTimeout: 60_000, keepAliveTimeout: 72_000, noDelay: true }
    const turns = new ConnectionTurns((request, response) => { this.#listener?.(request, response) })
    this.raw = createServer(options, turns.take)
    this.raw.timeout = 0
    this.raw.on('clientError', (error, socket) => answerParserError(error, socket, log))
    this.raw.on('checkExpectation', refuseExpectation)
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
