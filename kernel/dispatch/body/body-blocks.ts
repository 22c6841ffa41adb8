import type { Clock, Timer } from '../../contract/index.js'

const STEP_BYTES = 1024 * 1024
/** Lent and free ones together. */
const MOST_BYTES = 128 * 1024 * 1024
const IDLE_MS = 10_000

/** The memory of one request's body, and of what was made of it. */
interface Loan {
  readonly owner: BodyBlocks
  readonly blocks: ArrayBuffer[]
  /** Calls that read it at this moment. */
  readers: number
  /** A call has sent all of it, and none was given up before it had. */
  isSpent: boolean
  isLost: boolean
  /** The request is over. */
  isOver: boolean
}

/** By the buffers that were lent. */
const loans = new WeakMap<Buffer, Loan>()

/**
 * Memory for large bodies that is used again: the first write to each page of fresh memory costs more than all else that is
 * done with a picture, and every few pictures that are let go bring a full collection of the heap.
 *
 * A block is used again only when all calls that read it are known to have sent it whole. The buffers that it was lent as
 * are detached by then: one that was kept is empty, and never the body of another client.
 */
export class BodyBlocks {
  readonly #clock: Clock
  readonly #mostBytes: number
  readonly #free: ArrayBuffer[] = []
  #bytes = 0
  #timer: Timer | null = null

  constructor (clock: Clock, mostBytes: number) {
    this.#clock = clock
    this.#mostBytes = Math.min(mostBytes, MOST_BYTES)
  }

  /** What is kept for the next bodies. */
  get freeBytes (): number { return this.#free.reduce((sum, { byteLength }) => sum + byteLength, 0) }

  /** Memory for a body, to be given back; null where there is no more of it. */
  lend (bytes: number): Buffer | null {
    keepFreed()
    const block = this.#take(bytes)
    if (block === null) return null
    const body = Buffer.from(block, 0, bytes)
    loans.set(body, { owner: this, blocks: [block], readers: 0, isSpent: false, isLost: false, isOver: false })
    return body
  }

  /** As `lend`, for something that is made of a body: both are given back as one. */
  lendBeside (loan: Loan, bytes: number): Buffer | null {
    const block = loan.isOver ? null : this.#take(bytes)
    if (block === null) return null
    loan.blocks.push(block)
    const copy = Buffer.from(block, 0, bytes)
    loans.set(copy, loan)
    return copy
  }

  /**
   * The request is over.
   * @param isUnseen the body never came whole, so that nothing else has a hold of it
   */
  giveBack (body: Buffer, isUnseen = false): void {
    const loan = loans.get(body)
    if (loan === undefined) return
    loan.isOver = true
    const isFree = isUnseen || (loan.isSpent && !loan.isLost && loan.readers === 0)
    for (const block of loan.blocks.splice(0)) {
      this.#bytes -= block.byteLength
      if (isFree) this.#keep(block)
    }
  }

  close (): void {
    this.#timer?.cancel()
    this.#timer = null
    this.#drop()
  }

  #take (bytes: number): ArrayBuffer | null {
    let best = -1
    this.#free.forEach(({ byteLength }, i) => {
      if (byteLength >= bytes && byteLength <= bytes * 2 && (best === -1 || byteLength < this.#free[best]!.byteLength)) best = i
    })
    if (best !== -1) return this.#free.splice(best, 1)[0]!
    const size = Math.ceil(bytes / STEP_BYTES) * STEP_BYTES
    while (this.#bytes + size > this.#mostBytes && this.#free.length > 0) this.#bytes -= this.#free.shift()!.byteLength
    if (this.#bytes + size > this.#mostBytes) return null
    this.#bytes += size
    return Buffer.allocUnsafeSlow(size).buffer as ArrayBuffer
  }

  #keep (block: ArrayBuffer): void {
    // moves the memory: what it was lent as has none any more
    const moved = structuredClone(block, { transfer: [block] })
    this.#bytes += moved.byteLength
    this.#free.push(moved)
    this.#timer?.cancel()
    this.#timer = this.#clock.setTimer(IDLE_MS, () => this.#drop())
  }

  #drop (): void {
    for (const { byteLength } of this.#free.splice(0)) this.#bytes -= byteLength
  }
}

const LARGE_BYTES = 16 * 1024 * 1024
let isKept = false

/**
 * The C library gives freed memory back to the kernel at once, and takes it again for the next piece of a body, until it has seen
 * a large piece being freed: from then on it keeps as much. Called for the first large body, so that a gateway without any
 * stays small.
 */
export function keepFreed (): void {
  if (!isKept) Buffer.allocUnsafeSlow(LARGE_BYTES)
  isKept = true
}

/** Memory for what is made of a body, from where the body's own is; null for a body that was not lent. */
export function blockBeside (body: Buffer, bytes: number): Buffer | null {
  const loan = loans.get(body)
  return loan === undefined ? null : loan.owner.lendBeside(loan, bytes)
}

/** A call begins to read a body. */
export function readBegins (body: Buffer): void {
  const loan = loans.get(body)
  if (loan !== undefined) loan.readers++
}

/** It has ended. @param isSent nothing of the body is on its way out any more */
export function readEnds (body: Buffer, isSent: boolean): void {
  const loan = loans.get(body)
  if (loan === undefined) return
  loan.readers--
  if (isSent) loan.isSpent = true
  else loan.isLost = true
}

/** Something other than a call has a hold of it, for as long as it likes. */
export function keepBody (body: Buffer): void {
  const loan = loans.get(body)
  if (loan !== undefined) loan.isLost = true
}
