import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export type RequestListener = (request: IncomingMessage, response: ServerResponse) => void

/** A client that sends more requests than this before it reads an answer is not read from until some are served. */
const MAX_WAITING = 32

type Pair = readonly [request: IncomingMessage, response: ServerResponse]

/**
 * Requests of one connection, one after the other. A client may send many without waiting for answers, and leave: what
 * it left behind is never begun. Begun all at once, each would be served to its end for nobody.
 */
export class ConnectionTurns {
  readonly #serve: RequestListener
  readonly #waiting = new WeakMap<Socket, Pair[]>()

  constructor (serve: RequestListener) {
    this.#serve = serve
  }

  readonly take: RequestListener = (request, response) => {
    const { socket } = request
    const waiting = this.#waiting.get(socket)
    if (waiting === undefined) {
      this.#begin(socket, request, response)
      return
    }
    waiting.push([request, response])
    if (waiting.length >= MAX_WAITING) socket.pause()
  }

  #begin (socket: Socket, request: IncomingMessage, response: ServerResponse): void {
    const waiting: Pair[] = this.#waiting.get(socket) ?? []
    this.#waiting.set(socket, waiting)
    response.once('close', () => {
      if (socket.destroyed) return
      const next = waiting.shift()
      if (next === undefined) {
        this.#waiting.delete(socket)
        return
      }
      if (waiting.length < MAX_WAITING && socket.isPaused()) socket.resume()
      this.#begin(socket, ...next)
    })
    this.#serve(request, response)
  }
}
