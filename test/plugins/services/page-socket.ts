import type { Test } from 'tap'
import { WebSocket } from 'ws'

/** The socket of a page. */
export interface Page {
  readonly socket: WebSocket
  readonly send: (message: object | string) => void
  /** The next message for which this holds; others before it are left out. */
  readonly next: (holds: (message: Record<string, unknown>) => boolean) => Promise<Record<string, unknown>>
  readonly closed: Promise<number>
}

/** @param url http or https */
export function pageOn (t: Test, url: string, headers: Readonly<Record<string, string>>): Page {
  const socket = new WebSocket(url.replace('http', 'ws'), { headers })
  t.teardown(() => socket.terminate())
  const closed = new Promise<number>(resolve => { socket.once('close', resolve) })
  socket.on('error', () => undefined)
  const came: Array<Record<string, unknown>> = []
  let wake = (): void => {}
  socket.on('message', data => {
    came.push(JSON.parse((data as Buffer).toString()) as Record<string, unknown>)
    wake()
  })
  return {
    socket,
    closed,
    send: message => socket.send(typeof message === 'string' ? message : JSON.stringify(message)),
    next: async holds => {
      for (;;) {
        const message = came.shift()
        if (message === undefined) await new Promise<void>(resolve => { wake = resolve })
        else if (holds(message)) return message
      }
    }
  }
}
