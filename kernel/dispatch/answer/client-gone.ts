import type { ServerResponse } from 'node:http'

/** Whether the client of an answer has left already: nothing will tell any more. */
export function isGone (res: ServerResponse): boolean {
  return res.destroyed || res.req.socket.destroyed
}

const PROBED = Symbol('who writes an answer')

/** The writer of an answer, which knows what can be written into it without changing it. */
export interface Probed {
  probe (): void
}

export function probedBy (res: ServerResponse, writer: Probed): void {
  (res as { [PROBED]?: Probed })[PROBED] = writer
}

/**
 * Writes what a client skips, because only a write tells a client that has left from one that has but ended its own side.
 * What that finds out comes as the end of the connection.
 */
export function probe (res: ServerResponse): void {
  const writer = (res as { [PROBED]?: Probed })[PROBED]
  if (writer !== undefined) writer.probe()
  else if (!res.headersSent && takesInterim(res)) res.writeContinue()
}

/** Whether a client may be sent an interim answer: all that speak HTTP/1.1 skip `100 Continue`, asked for or not. */
export function takesInterim ({ req: { httpVersionMajor: major, httpVersionMinor: minor } }: ServerResponse): boolean {
  return major > 1 || minor >= 1
}

/**
 * Of an answer whose head is out and which comes in chunks: the next one's length, or the end, begins with a zero. That is
 * how a chunk's length may be written, and no byte of the answer.
 */
export function writeLeadingZero (res: ServerResponse): void {
  res.socket?.write('0')
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
