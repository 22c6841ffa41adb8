import type { Socket } from 'node:net'
import type { Logger } from 'svc-gateway/plugin'
import type { ReachApi } from './reach.js'

const SUBPROTOCOL = 'v4.channel.k8s.io'
const DATA = 0
/** Each channel begins with the port that it is for. */
const GREETING_BYTES = 2
const PAUSE_ABOVE_BYTES = 1024 * 1024
const HANDSHAKE_MS = 15_000
const LONGEST_FRAME = 16 * 1024 * 1024

/** Carries one connection to a port of a pod, over a WebSocket of its own. The connection ends when either end does. */
export async function forward (api: ReachApi, id: string, port: number, socket: Socket, log: Logger): Promise<void> {
  socket.on('error', () => socket.destroy())
  // nothing is read before there is a way for it
  socket.pause()
  try {
    const [{ default: WebSocket }, { url, headers, tls }] = await Promise.all([
      import('ws'), api.connection(`${api.path('pods', id)}/portforward?ports=${port}`)
    ])
    if (socket.destroyed) return
    const way = new WebSocket(url, SUBPROTOCOL, {
      headers, ...tls, handshakeTimeout: HANDSHAKE_MS, perMessageDeflate: false, maxPayload: LONGEST_FRAME
    })
    way.binaryType = 'nodebuffer'
    const greeted = new Set<number>()
    way.on('open', () => socket.resume())
    way.on('message', (message: Buffer) => {
      const channel = message[0] ?? DATA
      const bytes = message.subarray(greeted.has(channel) ? 1 : 1 + GREETING_BYTES)
      greeted.add(channel)
      if (bytes.length === 0) return
      if (channel !== DATA) {
        log.debug({ engine: id, port, said: bytes.toString('utf8').slice(0, 300) }, 'a forwarded connection failed')
        return void socket.destroy()
      }
      if (socket.write(bytes)) return
      way.pause()
      socket.once('drain', () => way.resume())
    })
    way.on('error', error => {
      log.debug({ err: error, engine: id, port }, 'a forwarded connection broke')
      socket.destroy()
    })
    way.on('close', () => socket.destroy())
    socket.on('data', chunk => {
      if (way.readyState !== WebSocket.OPEN) return
      way.send(Buffer.concat([Buffer.of(DATA), chunk]), () => {
        if (socket.isPaused() && way.bufferedAmount <= PAUSE_ABOVE_BYTES) socket.resume()
      })
      if (way.bufferedAmount > PAUSE_ABOVE_BYTES) socket.pause()
    })
    socket.on('close', () => way.terminate())
  } catch (error) {
    log.debug({ err: error, engine: id, port }, 'a connection could not be forwarded')
    socket.destroy()
  }
}
