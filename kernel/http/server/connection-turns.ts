import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { HalfClosed } from './half-closed.js'

export type RequestListener = (request: IncomingMessage, response: ServerResponse) => void

/** A client that sends more requests than this before it reads an answer is not read from until some are served. */
const MAX_WAITING = 32

type Pair = readonly [request: IncomingMessage, response: ServerResponse]

/** What one connection is at. */
interface Line {
  served: ServerResponse | null
  readonly waiting: Pair[]
  /** Made once: every answer of the connection tells it that it has closed. */
  readonly closed: () => void
}

/**
 * Requests of one connection, one after the other. A client may send many without waiting for answers, and leave: what
 * it left behind is never begun. Begun all at once, each would be served to its end although its client has left.
 */
export class ConnectionTurns {
  readonly #serve: RequestListener
  readonly #lines = new WeakMap<Socket, Line>()

  constructor (serve: RequestListener) {
    this.#serve = serve
  }

  readonly take: RequestListener = (request, response) => {
    const { socket } = request
    const line = this.#lines.get(socket) ?? this.#open(socket)
    if (line.served === null) {
      this.#begin(line, request, response)
      return
    }
    line.waiting.push([request, response])
    if (line.waiting.length >= MAX_WAITING) socket.pause()
  }

  #open (socket: Socket): Line {
    const line: Line = { served: null, waiting: [], closed: () => this.#closed(socket, line) }
    this.#lines.set(socket, line)
    socket.once('end', () => {
      if (line.served !== null) new HalfClosed(socket, () => line.served).ask()
    })
    return line
  }

  #begin (line: Line, request: IncomingMessage, response: ServerResponse): void {
    line.served = response
    response.on('close', line.closed)
    this.#serve(request, response)
  }

  #closed (socket: Socket, line: Line): void {
    const { waiting } = line
    line.served = null
    if (socket.destroyed) return
    const next = waiting.shift()
    if (next === undefined) return
    if (waiting.length < MAX_WAITING && socket.isPaused()) socket.resume()
    this.#begin(line, ...next)
  }
}
