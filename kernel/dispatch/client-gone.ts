import type { ServerResponse } from 'node:http'

/** Whether the client of an answer has left already: nothing will tell any more. */
export function isGone (res: ServerResponse): boolean {
  return res.destroyed || res.req.socket.destroyed
}

/** Why the work for a client is given up. An error, because that is what aborts hand on. */
export function clientLeft (): Error {
  return new Error('the client closed its connection')
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
