import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { probe } from '../../dispatch/answer/client-gone.js'

/**
 * When to ask, in milliseconds after the one before. What is answered at once is never asked. A client of this machine is
 * known to be gone with the second; the others are for networks, whose answer takes longer.
 */
const PAUSES_MS = [10, 20, 70, 400, 4_500] as const

/**
 * A connection whose client has said that it sends no more. One that reads on looks like one that was closed, until
 * something is written: the machine of a closed one answers with a reset, and the next write fails. So a little is
 * written that every client skips, and a failure ends the connection as any other does. Timers are the machine's own: it
 * is the network that is waited for.
 */
export class HalfClosed {
  readonly #socket: Socket
  readonly #served: () => ServerResponse | null
  #timer: NodeJS.Timeout | null = null
  #asked = 0

  constructor (socket: Socket, served: () => ServerResponse | null) {
    this.#socket = socket
    this.#served = served
    socket.once('close', () => {
      if (this.#timer !== null) clearTimeout(this.#timer)
    })
  }

  ask (): void {
    const pause = PAUSES_MS[this.#asked++]
    if (pause === undefined) return
    this.#timer = setTimeout(() => {
      const served = this.#served()
      if (!this.#socket.writable || served === null) return
      probe(served)
      this.ask()
    }, pause).unref()
  }
}
