import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock, SvcError, Timer } from '../../contract/index.js'
import { bodyMemoryFull, bodyStalled, bodyTooLarge, unknownCoding } from './body-errors.js'
import { BodyBlocks } from '../../dispatch/body/body-blocks.js'
import { BodyMemory } from './body-memory.js'
import { BodyRead, type BodyOutcome } from './body-read.js'
import { codingOf, isKnownCoding } from './content-coding.js'

/** How long a client that was refused may go on sending before its connection is cut. */
const LINGER_MS = 5_000
const MOST_LOOKS_PER_IDLE = 4

/** Where less were allowed, not even the request that changes the setting would get through. */
const LEAST_IDLE_MS = 1000

export interface BodyReadsOptions {
  readonly clock: Clock
  /** What bodies may take up together. */
  readonly memoryBytes: number
  /** How long next to nothing may come of a body; 0 is no limit. Read at every look. */
  readonly idleMs: () => number
}

/**
 * The bodies that are on their way in. Large ones count against the memory that all of them share until their request is
 * answered; one that hardly moves is given up. A body that comes at once costs neither a timer nor a count.
 */
export class BodyReads {
  readonly #clock: Clock
  readonly #idleMs: () => number
  readonly memory: BodyMemory
  readonly blocks: BodyBlocks
  /** A list whose links are in its entries: one more body allocates nothing. */
  #first: BodyRead | null = null
  #timer: Timer | null = null
  /** The idle time that the timer was set for: a change counts from the next body on. */
  #timedMs = 0
  #closed = false

  constructor ({ clock, memoryBytes, idleMs }: BodyReadsOptions) {
    this.#clock = clock
    const boundedMs = (): number => idleMs() === 0 ? 0 : Math.max(LEAST_IDLE_MS, idleMs())
    this.#idleMs = boundedMs
    this.memory = new BodyMemory(memoryBytes)
    this.blocks = new BodyBlocks(clock, memoryBytes)
  }

  /**
   * Reads a request's body whole. Calls `done` once: with the body, with why there is none, or with neither when the client
   * left in the middle. Compressed bodies are handed on unpacked; every bound is one on what comes out.
   * @param response until whose end the body counts; without one it counts while it comes
   */
  read (request: IncomingMessage, response: ServerResponse | null, limit: number, done: BodyOutcome): void {
    const { headers } = request
    const coding = codingOf(headers['content-encoding'])
    if (coding !== null && !isKnownCoding(coding)) return done(unknownCoding(coding), null)
    const length = headers['content-length']
    if (length !== undefined && Number(length) > limit) return done(bodyTooLarge(), null)
    const read = new BodyRead(this, request, response, limit, done)
    this.#add(read)
    read.start(coding, length === undefined ? -1 : Number(length))
  }

  /** How many are on their way in. */
  get open (): number {
    let count = 0
    for (let read = this.#first; read !== null; read = read.after) count++
    return count
  }

  close (): void {
    this.#closed = true
    this.#timer?.cancel()
    this.#timer = null
    this.blocks.close()
  }

  remove (read: BodyRead): void {
    const { before, after } = read
    if (before !== null) before.after = after
    else if (this.#first === read) this.#first = after
    if (after !== null) after.before = before
    read.before = read.after = null
  }

  full (): SvcError {
    return bodyMemoryFull(this.memory.limitBytes)
  }

  /** To close now would reset the connection, and the client might never see the answer: the rest is read and dropped. */
  linger (request: IncomingMessage): void {
    const timer = this.#clock.setTimer(LINGER_MS, () => request.socket.destroy())
    const done = (): void => timer.cancel()
    request.once('end', done)
    request.once('close', done)
    request.resume()
  }

  #add (read: BodyRead): void {
    read.after = this.#first
    if (this.#first !== null) this.#first.before = read
    this.#first = read
    if (this.#timer === null || this.#timedMs !== this.#idleMs()) this.#watch()
  }

  #watch (): void {
    const idleMs = this.#timedMs = this.#idleMs()
    this.#timer?.cancel()
    this.#timer = null
    if (idleMs === 0 || this.#closed) return
    this.#timer = this.#clock.setTimer(idleMs / MOST_LOOKS_PER_IDLE, this.#look)
  }

  readonly #look = (): void => {
    this.#timer = null
    const idleMs = this.#idleMs()
    const now = this.#clock.monotonic()
    for (let read = this.#first; read !== null;) {
      const next: BodyRead | null = read.after
      if (read.isStalled(now, idleMs)) read.refuse(bodyStalled(idleMs))
      read = next
    }
    if (this.#first !== null) this.#watch()
  }
}
