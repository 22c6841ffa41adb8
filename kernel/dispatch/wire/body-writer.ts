import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { errors } from 'undici'

/** Who is told how far a body is. */
export interface WriterOwner {
  /** @param isTheirs the next step is the other side's: it takes no more for now, or has all of it */
  onBody (isTheirs: boolean): void
  /** It cannot be sent whole, and nothing more is sent. */
  onBodyFailed (error: Error): void
}

/** Sends a body that streams, at the pace of the other side, its head with the first bytes. */
export class BodyWriter {
  readonly #owner: WriterOwner
  readonly #socket: Socket
  readonly #body: Readable
  /** Of the whole; -1 for one that goes out in chunks. */
  readonly #length: number
  #head: string | null
  #bytes = 0
  #state: 'sending' | 'sent' | 'stopped' = 'sending'

  constructor (owner: WriterOwner, socket: Socket, head: string, body: Readable, length: number) {
    this.#owner = owner
    this.#socket = socket
    this.#head = head
    this.#body = body
    this.#length = length
  }

  /** All of it was handed to the connection. */
  get isSent (): boolean { return this.#state === 'sent' }

  start (): void {
    const body = this.#body
    body.on('data', this.#onData)
    body.on('end', this.#onEnd)
    body.on('error', this.#fail)
    body.on('close', this.#onClose)
    this.#socket.on('drain', this.#onDrain)
    this.#owner.onBody(false)
    if (body.destroyed) this.#onClose()
  }

  /** Nothing more is sent, and what is left of the body is given up. */
  stop (): void {
    if (this.#state === 'sending') this.#state = 'stopped'
    this.#leave()
    this.#body.destroy()
  }

  readonly #onData = (chunk: Buffer): void => {
    if (chunk.length === 0) return
    this.#bytes += chunk.length
    if (this.#length !== -1 && this.#bytes > this.#length) return this.#fail(new errors.RequestContentLengthMismatchError())
    const socket = this.#socket
    const isChunk = this.#length === -1
    socket.cork()
    this.#sendHead()
    if (isChunk) socket.write(`${chunk.length.toString(16)}\r\n`, 'latin1')
    let goesOn = socket.write(chunk)
    if (isChunk) goesOn = socket.write('\r\n', 'latin1')
    socket.uncork()
    this.#owner.onBody(!goesOn)
    if (!goesOn) this.#body.pause()
  }

  readonly #onDrain = (): void => {
    this.#owner.onBody(false)
    this.#body.resume()
  }

  readonly #onEnd = (): void => {
    if (this.#length !== -1 && this.#bytes !== this.#length) return this.#fail(new errors.RequestContentLengthMismatchError())
    this.#state = 'sent'
    this.#leave()
    this.#socket.cork()
    this.#sendHead()
    if (this.#length === -1) this.#socket.write('0\r\n\r\n', 'latin1')
    this.#socket.uncork()
    this.#owner.onBody(true)
  }

  readonly #onClose = (): void => this.#fail(new errors.RequestAbortedError())

  readonly #fail = (error: Error): void => {
    if (this.#state !== 'sending') return
    this.stop()
    this.#owner.onBodyFailed(error)
  }

  #sendHead (): void {
    if (this.#head !== null) this.#socket.write(this.#head, 'latin1')
    this.#head = null
  }

  /** Its errors are listened to for as long as it lives: one that comes too late must not end the process. */
  #leave (): void {
    this.#socket.off('drain', this.#onDrain)
    this.#body.off('data', this.#onData)
    this.#body.off('end', this.#onEnd)
    this.#body.off('close', this.#onClose)
  }
}
