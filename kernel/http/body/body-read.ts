import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Transform } from 'node:stream'
import type { SvcError } from '../../contract/index.js'
import { isGone, onClose } from '../../dispatch/answer/client-gone.js'
import { bodyTooLarge, brokenCoding } from './body-errors.js'
import type { BodyBlocks } from '../../dispatch/body/body-blocks.js'
import { BodyPieces } from '../../dispatch/body/body-pieces.js'
import type { BodyMemory } from './body-memory.js'
import { openCoding } from './content-coding.js'

const EMPTY: Buffer = Buffer.alloc(0)
/** Up to here a body does not count: its connection costs as much. */
const UNCOUNTED_BYTES = 64 * 1024
/** From this length on a body is written into memory that is used again, as soon as so much of it has come. */
const LEAST_BLOCK_BYTES = 1024 * 1024
const EARNEST_BYTES = 256 * 1024
/** What has to come of a body within the idle time, unless it ends. Less is a client that wants to be slow. */
const PROGRESS_BYTES = 16 * 1024

/** The body, or why there is none; neither when the client has left. */
export type BodyOutcome = (error: SvcError | null, body: Buffer | null) => void

/** What a body asks of all that are on their way in. */
export interface BodyCompany {
  readonly memory: Pick<BodyMemory, 'take' | 'give'>
  readonly blocks: Pick<BodyBlocks, 'lend' | 'giveBack'>
  remove (read: BodyRead): void
  full (): SvcError
  linger (request: IncomingMessage): void
}

/** One body on its way in. Every inference request makes one of these, so it is made of little. */
export class BodyRead {
  /** Links of the list that it stands in, which is `BodyReads`' to keep. */
  before: BodyRead | null = null
  after: BodyRead | null = null
  readonly #all: BodyCompany
  readonly #request: IncomingMessage
  readonly #response: ServerResponse | null
  readonly #limit: number
  readonly #done: BodyOutcome
  #first: Buffer = EMPTY
  /** From the second piece on. */
  #pieces: BodyPieces | null = null
  #size = 0
  /** What the client says that it will be; -1 when it does not, or when it comes packed. */
  #length = -1
  /** Memory for the whole of it. */
  #block: Buffer | null = null
  #isWhole = false
  #held = 0
  #hasEnded = false
  #unpacking: Unpacking | null = null
  /** How far it was when it last got on, and when that was; -1 before the first look. */
  #mark = 0
  #markAt = -1

  constructor (all: BodyCompany, request: IncomingMessage, response: ServerResponse | null, limit: number, done: BodyOutcome) {
    this.#all = all
    this.#request = request
    this.#response = response
    this.#limit = limit
    this.#done = done
  }

  /** @param length -1 if unknown */
  start (coding: string | null, length: number): void {
    const request = this.#request
    if (coding === null && length >= LEAST_BLOCK_BYTES) this.#length = length
    if (coding !== null) {
      const failed = (error: Error): void => this.refuse(brokenCoding(coding, error))
      this.#unpacking = new Unpacking(request, coding, this.#onData, () => this.#complete(), failed)
    }
    request.on('data', this.#unpacking?.push ?? this.#onData)
    request.on('end', this.#onEnd)
    request.on('close', this.#onClose)
  }

  isStalled (now: number, idleMs: number): boolean {
    const came = this.#unpacking?.bytes ?? this.#size
    if (this.#markAt === -1 || came - this.#mark >= PROGRESS_BYTES) {
      this.#mark = came
      this.#markAt = now
    }
    return !this.#hasEnded && idleMs > 0 && now - this.#markAt >= idleMs
  }

  refuse (error: SvcError): void {
    const request = this.#request
    const isCutOff = error.status === 503 && !this.#hasEnded
    this.#stop()
    this.#free()
    if (isCutOff) this.#all.linger(request)
    this.#done(error, null)
  }

  readonly #onData = (piece: Buffer): void => {
    const size = this.#size += piece.length
    if (size > this.#limit) return this.refuse(bodyTooLarge())
    if (size > UNCOUNTED_BYTES && !this.#hold(size)) return this.refuse(this.#all.full())
    if (this.#block !== null) piece.copy(this.#block, size - piece.length)
    else if (this.#first === EMPTY) this.#first = piece
    else this.#more(piece)
    if (this.#length !== -1 && size >= EARNEST_BYTES) this.#moveToBlock()
  }

  #more (piece: Buffer): void {
    if (this.#pieces === null) {
      this.#pieces = new BodyPieces()
      this.#pieces.add(this.#first)
    }
    this.#pieces.add(piece)
  }

  readonly #onEnd = (): void => {
    this.#hasEnded = true
    if (this.#unpacking === null) this.#complete()
    else this.#unpacking.end()
  }

  readonly #onClose = (): void => {
    // what has come whole may still be on its way through the decoder
    if (this.#hasEnded) return
    this.#stop()
    this.#free()
    this.#done(null, null)
  }

  #complete (): void {
    const body = this.#block ?? this.#pieces?.joined() ?? this.#first
    this.#isWhole = true
    this.#stop()
    if (this.#response === null) this.#free()
    this.#done(null, body)
  }

  #moveToBlock (): void {
    // of a body that is not counted nothing would tell when to give it back
    const block = this.#held === 0 || this.#response === null ? null : this.#all.blocks.lend(this.#length)
    this.#length = -1
    if (block === null) return
    if (this.#pieces === null) this.#first.copy(block)
    else this.#pieces.copyTo(block)
    this.#block = block
    this.#first = EMPTY
    this.#pieces = null
  }

  /** Counts what came so far; false when that is too much together with the others'. */
  #hold (size: number): boolean {
    const response = this.#response
    // of an answer that has ended already nothing would tell when to count it back
    if (this.#held === 0 && response !== null && isGone(response)) return true
    if (!this.#all.memory.take(size - this.#held, this.#held)) return false
    if (this.#held === 0 && response !== null) onClose(response, () => this.#free())
    this.#held = size
    return true
  }

  #free (): void {
    if (this.#block !== null) this.#all.blocks.giveBack(this.#block, !this.#isWhole)
    this.#block = null
    if (this.#held === 0) return
    this.#all.memory.give(this.#held)
    this.#held = 0
  }

  #stop (): void {
    const request = this.#request
    this.#all.remove(this)
    // behind its end nothing comes any more, and to take the listeners back would cost as much as to set them
    if (!this.#hasEnded) {
      request.off('data', this.#unpacking?.push ?? this.#onData)
      request.off('end', this.#onEnd)
      request.off('close', this.#onClose)
    }
    this.#unpacking?.close()
    this.#first = EMPTY
    this.#pieces = null
  }
}

/** A compressed body. What comes out is asked for no faster than it is taken. */
class Unpacking {
  readonly #request: IncomingMessage
  readonly #coding: string
  readonly #onData: (piece: Buffer) => void
  readonly #onEnd: () => void
  readonly #onError: (error: Error) => void
  #decoder: Transform | null = null
  /** What came over the wire. */
  bytes = 0

  constructor (
    request: IncomingMessage, coding: string, onData: (piece: Buffer) => void, onEnd: () => void, onError: (error: Error) => void
  ) {
    this.#request = request
    this.#coding = coding
    this.#onData = onData
    this.#onEnd = onEnd
    this.#onError = onError
  }

  readonly push = (piece: Buffer): void => {
    if (piece.length === 0) return
    this.bytes += piece.length
    this.#decoder ??= this.#open(piece[0]!)
    if (!this.#decoder.write(piece)) this.#request.pause()
  }

  end (): void {
    if (this.#decoder === null) this.#onEnd()
    else this.#decoder.end()
  }

  close (): void {
    this.#decoder?.removeAllListeners().on('error', ignore).destroy()
  }

  #open (first: number): Transform {
    const decoder = openCoding(this.#coding, first)
    decoder.on('data', this.#onData)
    decoder.on('drain', () => this.#request.resume())
    decoder.on('end', this.#onEnd)
    decoder.on('error', this.#onError)
    return decoder
  }
}

/** Of a decoder that was given up. */
function ignore (): void {}
