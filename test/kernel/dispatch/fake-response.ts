import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'

/** A client's answer as the dispatcher writes it, with a client that reads as fast or as slowly as the test says. */
export class FakeResponse extends EventEmitter {
  readonly socket: EventEmitter | null = new EventEmitter()
  readonly req = { socket: Object.assign(new EventEmitter(), { destroyed: false }) }
  readonly head: { status: number, headers: readonly string[] }[] = []
  text = ''
  ended = false
  /** How often the head left without what follows it. */
  flushes = 0
  destroyed = false
  /** Bytes that the client has not read. */
  writableLength = 0
  timeout: { ms: number, fn: () => void } | null = null
  readonly #reads: boolean

  /** @param reads false for a client that takes nothing until `drain` */
  constructor (reads = true, hasSocket = true) {
    super()
    this.#reads = reads
    if (!hasSocket) this.socket = null
  }

  get raw (): ServerResponse { return this as unknown as ServerResponse }
  get status (): number | undefined { return this.head[0]?.status }
  get writableNeedDrain (): boolean { return this.writableLength > 0 }

  header (name: string): string[] {
    const { headers = [] } = this.head[0] ?? {}
    return headers.filter((_, i) => i % 2 === 1 && headers[i - 1]!.toLowerCase() === name)
  }

  writeHead (status: number, headers: readonly string[] | Readonly<Record<string, string>>): this {
    this.head.push({ status, headers: Array.isArray(headers) ? headers as readonly string[] : Object.entries(headers).flat() })
    return this
  }

  flushHeaders (): void { this.flushes++ }

  write (chunk: Buffer | string): boolean {
    if (this.ended || this.destroyed) throw new Error('a write behind the end')
    this.text += chunk.toString()
    if (!this.#reads) this.writableLength += chunk.length
    return this.#reads
  }

  end (chunk?: Buffer | string): void {
    if (chunk !== undefined) this.write(chunk)
    this.ended = true
    this.emit('finish')
  }

  destroy (): void {
    this.destroyed = true
    this.emit('close')
  }

  setTimeout (ms: number, fn: () => void): this {
    this.timeout = { ms, fn }
    return this
  }

  /** The client reads what there is. */
  drain (): void {
    this.writableLength = 0
    this.emit('drain')
  }

  /** The client closes its connection. */
  leave (): void {
    this.req.socket.destroyed = true
    this.req.socket.emit('close')
    if (this.socket !== null) this.emit('close')
  }
}
