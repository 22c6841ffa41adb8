import { once } from 'node:events'
import type { Test } from 'tap'
import { WebSocket } from 'ws'

export interface Event extends Record<string, unknown> { readonly type: string }

export interface SocketClient {
  readonly socket: WebSocket
  /** Everything that came. */
  readonly events: readonly Event[]
  readonly send: (event: object | string) => void
  /** The next event of this type, behind the last one that was waited for. */
  readonly next: (type: string) => Promise<Event>
  readonly closed: Promise<number>
  /** Types of the events so far, several of the same behind each other as one. */
  readonly types: () => string[]
}

/** A client of a route whose messages are JSON with a type. */
export async function socketClient (t: Test, url: string, headers: Readonly<Record<string, string>> = {}): Promise<SocketClient> {
  const { 'sec-websocket-protocol': protocols, ...others } = headers
  const socket = new WebSocket(url, protocols?.split(', ') ?? [], { headers: others })
  t.teardown(() => socket.terminate())
  const events: Event[] = []
  let seen = 0
  let wake = (): void => {}
  socket.on('message', data => {
    events.push(JSON.parse((data as Buffer).toString()) as Event)
    wake()
  })
  const closed = new Promise<number>(resolve => { socket.once('close', resolve) })
  socket.once('close', () => wake())
  await once(socket, 'open')
  return {
    socket,
    events,
    closed,
    send: event => socket.send(typeof event === 'string' ? event : JSON.stringify(event)),
    next: async type => {
      for (;;) {
        while (seen < events.length) {
          const event = events[seen++]!
          if (event.type === type) return event
        }
        if (socket.readyState === WebSocket.CLOSED) throw new Error(`the socket closed before ${type}: ${JSON.stringify(events.slice(-5))}`)
        await new Promise<void>(resolve => { wake = resolve })
      }
    },
    types: () => events.map(({ type }) => type).filter((type, i, all) => type !== all[i - 1])
  }
}
