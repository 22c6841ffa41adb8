import { connect, type Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { errors } from 'undici'
import { BodyWriter, type WriterOwner } from './body-writer.js'
import { ChunkedBody } from './chunked-body.js'
import type { WireHead } from './answer-head.js'
import { HeadReader } from './head-reader.js'

/** Who asked, and is told of the answer. */
export interface WireReader {
  /** The connection stands; nothing has been sent yet. */
  onConnect (abort: (reason?: Error) => void): void
  /** How far what streams to the other side is. @param isTheirs the next step is the other side's, and not who sends it */
  onBody? (isTheirs: boolean): void
  /** @param headers flat list of names and values, which other answers may have, too */
  onHeaders (status: number, headers: readonly string[], resume: () => void): unknown
  /** False pauses what comes until `resume` is called. */
  onData (chunk: Buffer): boolean
  /** @param isSent nothing of the request is on its way out any more */
  onComplete (isSent: boolean): void
  onError (error: Error): void
}

/** What is asked, its body as it is or as it comes. */
export interface WireRequest {
  readonly head: string
  readonly body: Buffer | Readable
  /** Of a body that streams; -1 for one that goes out in chunks. */
  readonly length: number
}

export interface ConnectionOwner {
  /** It may be used again, for that many milliseconds; -1 when the other side did not say. */
  free (connection: PlainConnection, keepMs: number): void
  /** It has ended. */
  gone (connection: PlainConnection): void
}

/**
 * All connections read into the same memory, since what came is copied out before the next one reads. Large, so that much
 * comes in one go.
 */
const SHARED = Buffer.allocUnsafeSlow(256 * 1024)
const KEEP_ALIVE_PROBE_MS = 60_000
/** Up to here head and body are one piece, cut from Node's own pool: to have two gathered costs a quarter more. */
const MOST_JOINED = 2048

/** One connection without TLS, with one POST at a time. */
export class PlainConnection implements WriterOwner {
  readonly #owner: ConnectionOwner
  readonly #socket: Socket
  /** Whom the answer is for; null while idle. */
  #reader: WireReader | null = null
  /** What is to be sent once the connection stands. */
  #request: WireRequest | null = null
  #writer: BodyWriter | null = null
  #isConnected = false
  #timer: NodeJS.Timeout | null = null
  readonly #heads = new HeadReader()
  #answer: WireHead | null = null
  #left = 0
  #chunks: ChunkedBody | null = null
  #failure: Error | null = null
  #isOver = false
  /** The pool's to keep: the end of its idle time, on the clock of `performance.now`. */
  idleUntil = 0

  constructor (owner: ConnectionOwner, host: string, port: number, connectTimeoutMs: number) {
    this.#owner = owner
    const socket = this.#socket = connect({
      host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS,
      onread: { buffer: SHARED, callback: count => this.#guarded(count) }
    })
    socket.on('connect', this.#connected)
    socket.on('error', this.#failed)
    socket.on('end', this.#ended)
    socket.on('close', this.#closed)
    if (connectTimeoutMs > 0) {
      this.#timer = setTimeout(() => socket.destroy(new errors.ConnectTimeoutError('the connection timed out')), connectTimeoutMs)
    }
  }

  get isOpen (): boolean { return !this.#socket.destroyed }

  /** Asks, at once or when the connection stands. Only for one that is new or free. */
  post (request: WireRequest, reader: WireReader): void {
    this.#reader = reader
    this.#request = request
    if (this.#isConnected) this.#send()
  }

  /** Ends the connection; who waits for an answer is told the error. */
  destroy (error: Error): void {
    this.#failure ??= error
    this.#socket.destroy()
  }

  #send (): void {
    const reader = this.#reader!
    reader.onConnect(reason => this.#abort(reader, reason))
    // it may have been given up by now
    if (this.#reader !== reader) return
    const { head, body, length } = this.#request!
    this.#request = null
    const socket = this.#socket
    if (!Buffer.isBuffer(body)) {
      this.#writer = new BodyWriter(this, socket, head, body, length)
      return this.#writer.start()
    }
    const size = head.length + body.length
    if (size <= MOST_JOINED) {
      const bytes = Buffer.allocUnsafe(size)
      bytes.write(head, 'latin1')
      body.copy(bytes, head.length)
      socket.write(bytes)
      return
    }
    socket.cork()
    socket.write(head, 'latin1')
    if (body.length > 0) socket.write(body)
    socket.uncork()
  }

  onBody (isTheirs: boolean): void {
    this.#reader?.onBody?.(isTheirs)
  }

  onBodyFailed (error: Error): void {
    this.#stop(error)
  }

  /** What is not sent of a body that streams is given up. */
  #endBody (): void {
    const { body } = this.#request ?? {}
    if (body !== undefined && !Buffer.isBuffer(body)) body.on('error', ignore).destroy()
    this.#request = null
    this.#writer?.stop()
    this.#writer = null
  }

  #abort (reader: WireReader, reason: Error = new errors.RequestAbortedError()): void {
    if (this.#reader !== reader) return
    this.#reader = null
    this.#socket.destroy()
    this.#endBody()
    reader.onError(reason)
  }

  readonly #connected = (): void => {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#isConnected = true
    if (this.#reader !== null) this.#send()
  }

  /** A reader that throws has its call ended, as any other failure would, not the process. */
  #guarded (count: number): boolean {
    try {
      return this.#read(count)
    } catch (error) {
      this.#stop(error as Error)
      return true
    }
  }

  /** False pauses the connection. */
  #read (count: number): boolean {
    let from = 0
    if (this.#reader === null) {
      this.#malformed('the server sent unrequested data')
      return true
    }
    if (this.#answer === null) {
      const head = this.#heads.take(SHARED.subarray(0, count))
      if (head === null || !this.#begin(head)) return true
      from = this.#heads.bodyAt
    }
    return this.#readBody(from, count)
  }

  /** False when who asked has left. */
  #begin (answer: WireHead): boolean {
    const reader = this.#reader!
    this.#answer = answer
    this.#left = answer.framing === 'length' ? answer.length : 0
    this.#chunks = answer.framing === 'chunks' ? new ChunkedBody() : null
    reader.onHeaders(answer.status, answer.headers, this.#resume)
    return this.#reader === reader
  }

  #readBody (from: number, count: number): boolean {
    const reader = this.#reader!
    const { framing } = this.#answer!
    let size = count - from
    let behind = count
    if (framing === 'chunks') {
      size = this.#chunks!.take(SHARED, from, count)
      behind = this.#chunks!.at
    } else if (framing !== 'close') {
      size = Math.min(size, this.#left)
      this.#left -= size
      behind = from + size
    }
    const goesOn = size === 0 || reader.onData(Buffer.from(SHARED.subarray(from, from + size)))
    if (this.#reader !== reader) return true
    if (this.#chunks?.isBroken === true) {
      this.#malformed('the chunks of the answer are malformed')
      return true
    }
    if (framing === 'chunks' ? !this.#chunks!.ended : framing === 'close' || this.#left > 0) return goesOn
    this.#complete(behind === count)
    return true
  }

  /** @param isClean nothing came behind the answer */
  #complete (isClean: boolean): void {
    const reader = this.#reader!
    const { keepMs } = this.#answer!
    this.#reader = this.#answer = this.#chunks = null
    const isSent = this.#socket.writableLength === 0 && this.#writer?.isSent !== false
    this.#endBody()
    // a body that is still on its way out would be in front of the next request
    if (!isClean || keepMs === 0 || !isSent || this.#socket.destroyed) this.#socket.destroy()
    else this.#owner.free(this, keepMs)
    reader.onComplete(isSent)
  }

  readonly #resume = (): void => {
    if (!this.#socket.destroyed) this.#socket.resume()
  }

  /** Not an end of the connection, for which a request may be sent once more. */
  #malformed (what: string): void {
    this.#stop(new errors.HTTPParserError(what))
  }

  #stop (error: Error): void {
    this.#failure ??= error
    this.#socket.destroy()
    this.#over()
  }

  readonly #failed = (error: Error): void => {
    this.#failure ??= error
  }

  readonly #ended = (): void => {
    if (this.#answer?.framing === 'close' && this.#reader !== null) this.#complete(false)
    else this.#stop(this.#socketError('other side closed'))
  }

  readonly #closed = (): void => {
    this.#failure ??= this.#socketError('closed')
    this.#over()
  }

  #over (): void {
    if (this.#isOver) return
    this.#isOver = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#owner.gone(this)
    const reader = this.#reader
    this.#reader = null
    this.#endBody()
    reader?.onError(this.#failure!)
  }

  #socketError (what: string): Error {
    const { remoteAddress, remotePort, bytesRead, bytesWritten } = this.#socket
    return new errors.SocketError(what, { remoteAddress, remotePort, bytesRead, bytesWritten } as never)
  }
}

/** Of a body that is given up before anything of it was read. */
function ignore (): void {}
