import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { svcError } from '../contract/index.js'

export type RequestListener = (request: IncomingMessage, response: ServerResponse) => void

/**
 * The listening socket. It outlives the Fastify instance behind it: when plugins change, a new instance takes
 * over and requests that run on the old one end in peace. Sets no limit on how long an answer may take.
 */
export class HttpServer {
  readonly raw: Server
  #listener: RequestListener | null = null

  constructor () {
    const options = { requestTimeout: 0, headersTimeout: 60_000, keepAliveTimeout: 72_000, noDelay: true }
    this.raw = createServer(options, (request, response) => { this.#listener?.(request, response) })
    this.raw.timeout = 0
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

function listenError (error: NodeJS.ErrnoException, host: string, port: number): Error {
  if (error.code === 'EADDRINUSE') {
    return svcError('gateway.listen_failed', `${host}:${port} is in use by another program; stop it, or take another port with --port`,
      { cause: error, details: { host, port } })
  }
  return svcError('gateway.listen_failed', `cannot listen on ${host}:${port} (${error.code ?? error.message})`, { cause: error, details: { host, port } })
}
