import type { ServerResponse } from 'node:http'

/** Whether the client of an answer has left already: nothing will tell any more. */
export function isGone (res: ServerResponse): boolean {
  return res.destroyed || res.req.socket.destroyed
}

/**
 * Why the work for a client is given up. An error, because that is what aborts hand on; neither a failure nor worth more
 * than a debug line.
 */
class ClientLeft extends Error {
  readonly requestId: string

  constructor (requestId: string) {
    super('the client closed its connection')
    this.requestId = requestId
  }
}

export function clientLeft (requestId: string): Error {
  return new ClientLeft(requestId)
}

/** The request whose client left, when that is what an error says; else null. */
export function leftRequest (error: unknown): string | null {
  return error instanceof ClientLeft ? error.requestId : null
}

/**
 * Calls back when the connection of an answer ends, complete or not. The answer to a pipelined request has no
 * socket while those before it are written, and never hears of its end: then the connection itself is watched.
 * Returns what takes the watch back.
 */
export function onClose (res: ServerResponse, closed: () => void): () => void {
  res.on('close', closed)
  if (res.socket !== null) return () => { res.off('close', closed) }
  const { socket } = res.req
  socket.on('close', closed)
  return () => {
    res.off('close', closed)
    socket.off('close', closed)
  }
}
