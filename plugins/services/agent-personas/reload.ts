import { messageOf, type Clock } from 'svc-gateway/plugin'
import type WebSocket from 'ws'
import type { Reload } from './ref.js'
import { reloadSocket } from './reload-url.js'

/** An agent that has just started makes its first session within seconds. */
const LIMIT_MS = 5_000
const LARGEST_MESSAGE = 1024 * 1024

type Answer = { readonly id?: unknown, readonly result?: unknown, readonly error?: unknown }

/**
 * Tells a running agent which persona it is now: `session.create`, then `config.set {key: "personality"}` on one JSON-RPC
 * socket. Whatever goes wrong is told, not thrown, but for an address that is refused.
 */
export async function reloadPersona (
  { clock, hosts }: { readonly clock: Clock, readonly hosts: readonly string[] },
  url: string, persona: string, signal: AbortSignal
): Promise<Reload> {
  const target = reloadSocket(url, hosts)
  const { WebSocket: Socket } = await import('ws')
  const socket = new Socket(target, { followRedirects: false, maxPayload: LARGEST_MESSAGE, handshakeTimeout: LIMIT_MS })
  const stop = new AbortController()
  const timer = clock.setTimer(LIMIT_MS, () => stop.abort(new Error(`the agent did not answer within ${LIMIT_MS / 1000} s`)))
  try {
    await told(socket, persona, AbortSignal.any([signal, stop.signal]))
    return { reloaded: true, reload_error: null }
  } catch (error) {
    return { reloaded: false, reload_error: messageOf(error).slice(0, 300) }
  } finally {
    timer.cancel()
    socket.terminate()
  }
}

async function told (socket: WebSocket, persona: string, signal: AbortSignal): Promise<void> {
  const failed = new Promise<never>((_resolve, reject) => {
    socket.on('error', reject)
    socket.on('close', code => reject(new Error(`the agent closed the connection (${code})`)))
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
  })
  failed.catch(() => {})
  const opened = new Promise<void>(resolve => { socket.once('open', () => resolve()) })
  await Promise.race([opened, failed])
  let last = 0
  const call = async (method: string, params: object): Promise<unknown> => {
    const id = ++last
    const answer = new Promise<unknown>((resolve, reject) => {
      socket.on('message', function hear (data) {
        const message = parsed(data)
        if (message?.id !== id) return
        socket.off('message', hear)
        if (message.error === undefined) resolve(message.result)
        else reject(new Error(`the agent refused ${method}: ${textOf(message.error)}`))
      })
    })
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
    return await Promise.race([answer, failed])
  }
  const session = await call('session.create', {})
  const sessionId = typeof session === 'object' && session !== null && 'session_id' in session ? session.session_id : undefined
  if (typeof sessionId !== 'string') throw new Error('the agent did not create a session')
  await call('config.set', { session_id: sessionId, key: 'personality', value: persona })
}

/** Events come on the same socket; they and whatever is no message are not answers. */
function parsed (data: WebSocket.RawData): Answer | null {
  try {
    const value: unknown = JSON.parse(Buffer.isBuffer(data) ? data.toString() : '')
    return typeof value === 'object' && value !== null ? value : null
  } catch {
    return null
  }
}

function textOf (error: unknown): string {
  const message = typeof error === 'object' && error !== null && 'message' in error ? error.message : error
  return typeof message === 'string' ? message : JSON.stringify(message)
}
