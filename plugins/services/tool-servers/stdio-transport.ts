import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import type { Clock, Program } from 'svc-gateway/plugin'
import { MAX_MESSAGE_BYTES, MessageReader, type ReadItem } from './message-reader.js'

/** What it may write in a minute unasked: prints, notifications, answers to nothing. */
const UNASKED_BYTES = 8 * 1024 * 1024
/** What a line counts for at the least: reading it costs something, too. */
const LINE_BYTES = 100
const WINDOW_MS = 60_000
/** What may wait for a program that does not read. */
const UNREAD_BYTES = 16 * 1024 * 1024

export interface StdioOptions {
  readonly clock: Clock
  readonly pipes: NonNullable<Program['pipes']>
  /** A line that is no message. */
  readonly onNoise: (text: string) => void
  /** It writes more than anyone can want: the caller ends it. */
  readonly onFlood: (why: string) => void
}

/**
 * A program's standard streams as a transport. An answer that is too large fails its own request and no other; what was not
 * asked for is bounded by the minute.
 */
export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  readonly #options: StdioOptions
  readonly #reader = new MessageReader()
  readonly #asked = new Set<string | number>()
  #unasked = 0
  #windowFrom = 0
  #isClosed = false

  constructor (options: StdioOptions) {
    this.#options = options
  }

  start (): Promise<void> {
    const { pipes: { stdout }, clock } = this.#options
    this.#windowFrom = clock.monotonic()
    stdout.on('data', (chunk: Buffer) => {
      for (const item of this.#reader.push(chunk)) {
        if (this.#isClosed) return
        this.#take(item)
      }
    })
    stdout.once('end', () => void this.close())
    stdout.once('close', () => void this.close())
    return Promise.resolve()
  }

  async send (message: JSONRPCMessage): Promise<void> {
    const { stdin } = this.#options.pipes
    if (this.#isClosed || !stdin.writable) throw new Error('the program has ended')
    if (stdin.writableLength > UNREAD_BYTES) throw new Error('the program does not read what it is sent')
    if ('method' in message && 'id' in message) this.#asked.add(message.id)
    await new Promise<void>((resolve, reject) => {
      stdin.write(`${JSON.stringify(message)}\n`, error => { if (error == null) resolve(); else reject(error) })
    })
  }

  close (): Promise<void> {
    if (this.#isClosed) return Promise.resolve()
    this.#isClosed = true
    this.#options.pipes.stdin.end()
    this.onclose?.()
    return Promise.resolve()
  }

  #take (item: ReadItem): void {
    if (item.kind === 'noise' && item.text !== '') this.#options.onNoise(item.text)
    const answers = item.kind === 'oversize' ? item.id : item.kind === 'message' ? answeredId(item.value) : null
    const isAsked = answers !== null && this.#asked.delete(answers)
    if (!isAsked && !this.#mayPass(item.bytes)) return
    if (item.kind === 'oversize' && isAsked) this.onmessage?.(tooLarge(answers, item.bytes))
    if (item.kind === 'message' && isMessage(item.value)) this.onmessage?.(item.value)
  }

  #mayPass (bytes: number): boolean {
    const { clock, onFlood } = this.#options
    const now = clock.monotonic()
    if (now - this.#windowFrom >= WINDOW_MS) {
      this.#windowFrom = now
      this.#unasked = 0
    }
    this.#unasked += Math.max(bytes, LINE_BYTES)
    if (this.#unasked <= UNASKED_BYTES) return true
    onFlood(`writes more than ${UNASKED_BYTES / 1024 / 1024} MiB a minute to its standard output unasked`)
    void this.close()
    return false
  }
}

function tooLarge (id: string | number, bytes: number): JSONRPCMessage {
  const mib = (size: number): number => Math.ceil(size / 1024 / 1024)
  const message = `the answer has ${mib(bytes)} MiB; at most ${mib(MAX_MESSAGE_BYTES)} are taken`
  return { jsonrpc: '2.0', id, error: { code: -32603, message, data: { code: 'mcp.answer_too_large' } } }
}

function answeredId (value: unknown): string | number | null {
  if (typeof value !== 'object' || value === null || 'method' in value || !('id' in value)) return null
  return typeof value.id === 'string' || typeof value.id === 'number' ? value.id : null
}

function isMessage (value: unknown): value is JSONRPCMessage {
  return typeof value === 'object' && value !== null && (value as { jsonrpc?: unknown }).jsonrpc === '2.0'
}
