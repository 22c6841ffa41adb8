import { connect } from 'node:net'
import type { HostileRequest } from './requests.js'

const PATIENCE_MS = 30_000

export interface Outcome {
  /** Null when the connection ended, or went on for ever, without an answer. */
  readonly status: number | null
  readonly text: string
}

/** One request on a connection of its own, as it is: no client puts anything right. A stream is left after its head. */
export function send (baseUrl: string, { method, path, headers, body, halfClosed, stream }: HostileRequest): Promise<Outcome> {
  const { hostname, port } = new URL(baseUrl)
  const lines = Object.entries({ host: `${hostname}:${port}`, connection: 'close', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  const length = body === null ? '' : `content-length: ${Buffer.byteLength(body)}\r\n`
  const head = `${method} ${path} HTTP/1.1\r\n${lines.join('')}${length}\r\n`
  return new Promise(resolve => {
    let text = ''
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
    const done = (): void => {
      clearTimeout(timer)
      socket.destroy()
      // a client that has ended its side is asked whether it is still there, with what every client skips
      const status = /^(?:HTTP\/1\.1 100 Continue\r\n\r\n)*HTTP\/1\.1 (\d{3})/.exec(text)?.[1]
      resolve({ status: status === undefined ? null : Number(status), text })
    }
    const timer = setTimeout(done, PATIENCE_MS)
    socket.on('data', chunk => {
      if (text.length < 16_384) text += chunk.toString('latin1')
      if (stream && text.includes('\r\n\r\n')) done()
    })
    socket.on('end', done).on('close', done).on('error', done)
    socket.write(head + (body ?? ''))
    if (halfClosed) socket.end()
  })
}
