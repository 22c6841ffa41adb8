import { request as httpRequest, type ClientRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { SlotLease, SvcError } from '../../contract/index.js'
import type { AnswerProgress } from '../requests/active-requests.js'
import { writeError } from '../answer/client-sink.js'
import { upstreamError } from './exchange.js'
import { forEngine, isReturned, requestHeaders } from '../answer/headers.js'

/** "Going away", as a server says it that has to end a WebSocket. */
const GOING_AWAY = Buffer.from([0x88, 0x02, 0x03, 0xe9])

/**
 * A WebSocket between a client and an engine: the handshake goes to the engine, then bytes pass both ways, unread. Owns the
 * lease from `open` on. Ends both sides when one has ended; `ended` is called once.
 */
export class EngineTunnel implements AnswerProgress {
  readonly isClients = true
  readonly #request: IncomingMessage
  readonly #res: ServerResponse
  readonly #socket: Socket
  readonly #requestId: string
  readonly #ended: () => void
  #lease: SlotLease | null = null
  #outgoing: ClientRequest | null = null
  #engine: Socket | null = null
  #bytesOut = 0
  #failed = false
  #done = false

  constructor (request: IncomingMessage, res: ServerResponse, requestId: string, ended: () => void) {
    this.#request = request
    this.#res = res
    this.#socket = request.socket
    this.#requestId = requestId
    this.#ended = ended
    this.#socket.once('close', () => this.#end())
  }

  get done (): boolean { return this.#done }
  get flowing (): boolean { return this.#engine !== null }
  get failed (): boolean { return this.#failed }
  get bytesOut (): number { return this.#bytesOut }

  open (lease: SlotLease, path: string): void {
    this.#lease = lease
    const { host, port } = lease.address
    const headers = [...forEngine(requestHeaders(this.#request.rawHeaders, this.#requestId), lease.address),
      'host', `${host.includes(':') ? `[${host}]` : host}:${port}`, 'connection', 'Upgrade', 'upgrade', 'websocket']
    const outgoing = this.#outgoing = httpRequest({ host, port, path, headers: headers as never, agent: false })
    outgoing.once('upgrade', (answer, engine, head) => this.#join(answer, engine as Socket, head))
    outgoing.once('response', answer => this.#refused(answer))
    outgoing.once('error', error => {
      this.fail(upstreamError(error, false, { label: `slot '${lease.slot}'`, details: { slot: lease.slot } }))
    })
    outgoing.end()
  }

  /** Tells the client as far as it can still be told. */
  fail (error: SvcError): void {
    if (this.#done) return
    this.#failed = true
    if (this.#engine === null && !this.#res.headersSent) writeError(this.#res, error, this.#requestId)
    else this.#socket.write(GOING_AWAY)
    this.#end()
  }

  #join (answer: IncomingMessage, engine: Socket, head: Buffer): void {
    if (this.#done) return void engine.destroy()
    this.#engine = engine
    this.#res.detachSocket(this.#socket)
    const lines = ['HTTP/1.1 101 Switching Protocols', 'connection: Upgrade', 'upgrade: websocket', `x-request-id: ${this.#requestId}`]
    this.#socket.write([...lines, ...returnedLines(answer.rawHeaders), '', ''].join('\r\n'), 'latin1')
    for (const socket of [this.#socket, engine]) {
      socket.setNoDelay(true)
      socket.setTimeout(0)
    }
    if (head.length > 0) engine.unshift(head)
    engine.on('data', (chunk: Buffer) => { this.#bytesOut += chunk.length })
    engine.on('error', () => engine.destroy())
    engine.once('close', () => this.#end())
    engine.pipe(this.#socket)
    this.#socket.pipe(engine)
  }

  /** The engine has no WebSocket there: what it says instead is the answer. */
  #refused (answer: IncomingMessage): void {
    if (this.#done) return void answer.destroy()
    this.#failed = (answer.statusCode ?? 500) >= 400
    const headers: string[] = []
    for (let i = 0; i + 1 < answer.rawHeaders.length; i += 2) {
      if (isReturned(answer.rawHeaders[i]!)) headers.push(answer.rawHeaders[i]!, answer.rawHeaders[i + 1]!)
    }
    this.#res.writeHead(answer.statusCode ?? 502, [...headers, 'x-request-id', this.#requestId])
    answer.on('error', () => this.#socket.destroy())
    answer.pipe(this.#res)
  }

  #end (): void {
    if (this.#done) return
    this.#done = true
    this.#outgoing?.destroy()
    this.#engine?.destroy()
    if (this.#engine !== null) this.#socket.destroySoon()
    this.#lease?.release()
    this.#ended()
  }
}

function returnedLines (raw: readonly string[]): string[] {
  const lines: string[] = []
  for (let i = 0; i + 1 < raw.length; i += 2) if (isReturned(raw[i]!)) lines.push(`${raw[i]!}: ${raw[i + 1]!}`)
  return lines
}
