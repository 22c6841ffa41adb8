import { connect, type Socket } from 'node:net'
import type { Test } from 'tap'
import { until } from '../wire-gateway.js'

/** A connection that says exactly what the test says. */
export interface RawClient {
  readonly socket: Socket
  /** Everything that came so far, as latin1. */
  readonly text: () => string
  readonly closed: Promise<void>
  send (part: string | Buffer): void
  /** Resolves when what came matches. */
  seen (pattern: RegExp): Promise<string>
}

export async function rawClient (t: Test, baseUrl: string): Promise<RawClient> {
  const { port, hostname } = new URL(baseUrl)
  let text = ''
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
  const closed = new Promise<void>(resolve => { socket.on('close', () => resolve()) })
  // an answer that ends the connection ends ours as well
  socket.on('end', () => socket.end())
  socket.on('data', chunk => { text += chunk.toString('latin1') })
  socket.on('error', () => {})
  t.teardown(() => socket.destroy())
  await new Promise<void>(resolve => { socket.on('connect', () => resolve()) })
  return {
    socket,
    text: () => text,
    closed,
    send: part => { socket.write(part, 'latin1') },
    seen: async pattern => {
      await until(() => pattern.test(text), `${String(pattern)} in ${JSON.stringify(text.slice(-500))}`)
      return text
    }
  }
}

/** A request as text; the body's length is added. */
export function post (path: string, body: string, headers: readonly string[] = [], version = '1.1'): string {
  return [`POST ${path} HTTP/${version}`, 'Host: localhost', 'Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`, ...headers, '', body].join('\r\n')
}

export function chatBody (body: Record<string, unknown> = {}): string {
  return JSON.stringify({ model: 'agent', messages: [{ role: 'user', content: 'hi' }], ...body })
}
