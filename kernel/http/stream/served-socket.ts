import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import { isSvcError, type AnyRoute, type Logger, type ServedSocket, type ServeSocket, type WebSocketBounds } from '../../contract/index.js'

/** What a message costs besides its bytes. */
const MESSAGE_BYTES = 64
/** RFC 6455: a close frame has 125 bytes, two of them for the code. */
const REASON_BYTES = 123

export interface SocketPlace {
  readonly route: AnyRoute
  readonly bounds: Required<WebSocketBounds>
  readonly gone: AbortSignal
}

/** One open WebSocket, with its bounds in both directions. */
export class Served implements ServedSocket {
  readonly place: SocketPlace
  /** Resolves when the connection has ended. */
  readonly closed: Promise<void>
  readonly #ws: WebSocket
  readonly #ended = new AbortController()
  readonly #unread: Array<string | Buffer> = []
  /** Index of the first unread message: each that is taken from the front of a long array would move all the others. */
  #next = 0
  #unreadBytes = 0
  #isRead = false
  #wake = (): void => {}
  /** Something has come since the last ping. */
  #isAlive = true

  constructor (ws: WebSocket, socket: Socket, place: SocketPlace) {
    this.#ws = ws
    this.place = place
    socket.on('data', () => { this.#isAlive = true })
    ws.on('message', (data: Buffer, isBinary: boolean) => this.#keep(data, isBinary))
    // it is answered by itself; a client that asks and never reads would pile the answers up
    ws.on('ping', () => { if (this.#isBehind) this.terminate() })
    // what breaks the protocol is followed by the close
    ws.on('error', () => {})
    this.closed = new Promise(resolve => {
      ws.on('close', code => {
        this.#end(`the socket closed with ${code}`)
        resolve()
      })
    })
  }

  get signal (): AbortSignal { return this.#ended.signal }

  get messages (): AsyncIterable<string | Buffer> {
    this.#isRead = true
    return this.#read()
  }

  get #isBehind (): boolean { return this.#ws.bufferedAmount > this.place.bounds.maxUnsentBytes }

  send (message: string | Uint8Array): Promise<void> {
    if (this.#ended.signal.aborted) return Promise.resolve()
    if (this.#isBehind) {
      this.close(1013, 'the client reads too slowly')
      return Promise.resolve()
    }
    return new Promise(resolve => { this.#ws.send(message, () => resolve()) })
  }

  close (code = 1000, reason = ''): void {
    // the answer of the client is among what it sent
    if (this.#ws.isPaused) this.#ws.resume()
    this.#ws.close(sendable(code), cut(reason))
    this.#end(`the gateway closed the socket with ${code}`)
  }

  terminate (): void {
    this.#ws.terminate()
  }

  /** One that is not read from cannot answer, and is left alone. */
  ping (): void {
    if (this.#ws.isPaused) return
    if (!this.#isAlive) return this.terminate()
    this.#isAlive = false
    this.#ws.ping()
  }

  /** Never rejects. */
  async serve (serve: ServeSocket, requestId: string, log: Logger): Promise<void> {
    try {
      await serve(this)
      this.close()
    } catch (error) {
      if (this.#ended.signal.aborted) return
      if (!isSvcError(error)) log.error({ request_id: requestId, err: error }, 'a WebSocket failed')
      this.close(1011, isSvcError(error) ? `${error.code}: ${error.message}` : `internal error; see the log, request id ${requestId}`)
    }
  }

  #keep (data: Buffer, isBinary: boolean): void {
    // what comes after the end is the client's farewell
    if (this.#ended.signal.aborted) return
    this.#unread.push(isBinary ? data : data.toString())
    this.#unreadBytes += data.length + MESSAGE_BYTES
    this.#wake()
    if (this.#unreadBytes <= this.place.bounds.maxMessageBytes) return
    if (this.#isRead) this.#ws.pause()
    else this.close(1008, 'this socket accepts no messages')
  }

  #take (): string | Buffer | undefined {
    const next = this.#unread[this.#next]
    if (next === undefined) return undefined
    this.#unread[this.#next++] = ''
    if (this.#next * 2 >= this.#unread.length) {
      this.#unread.splice(0, this.#next)
      this.#next = 0
    }
    return next
  }

  async* #read (): AsyncGenerator<string | Buffer> {
    for (;;) {
      const next = this.#take()
      if (next !== undefined) {
        this.#unreadBytes -= Buffer.byteLength(next) + MESSAGE_BYTES
        if (this.#ws.isPaused && this.#unreadBytes <= this.place.bounds.maxMessageBytes / 2) this.#ws.resume()
        yield next
      } else if (this.#ended.signal.aborted) {
        return
      } else {
        await new Promise<void>(resolve => { this.#wake = resolve })
      }
    }
  }

  #end (why: string): void {
    if (!this.#ended.signal.aborted) this.#ended.abort(new Error(why))
    this.#wake()
  }
}

/** The codes that may stand in a frame; 1005 is what a peer says that closes without one. */
function sendable (code: number): number {
  if (code === 1005) return 1000
  const isKnown = (code >= 1000 && code <= 1014 && code !== 1004 && code !== 1006) || (code >= 3000 && code <= 4999)
  return isKnown ? code : 1011
}

function cut (reason: string): string {
  let text = reason.slice(0, REASON_BYTES)
  while (Buffer.byteLength(text) > REASON_BYTES) text = text.slice(0, -1)
  return text
}
