const BLOCK_BYTES = 1024 * 1024

/**
 * Blocks of memory for what waits. They are used again at once, since nothing but a copy ever leaves them: pieces that were
 * kept as they came would outlive the collections of the young generation, and every few uploads bring one of the whole heap.
 */
export class HeldBlocks {
  readonly #most: number
  readonly #free: Buffer[] = []
  #lent = 0

  /** @param bytes what is kept for the next uploads at most, while there are any */
  constructor (bytes: number) {
    this.#most = Math.floor(bytes / BLOCK_BYTES)
  }

  get freeBytes (): number { return this.#free.length * BLOCK_BYTES }

  take (): Buffer {
    this.#lent++
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES)
  }

  give (blocks: readonly Buffer[]): void {
    if (blocks.length === 0) return
    this.#lent -= blocks.length
    // the last one out leaves nothing behind
    if (this.#lent === 0) this.#free.length = 0
    else for (const block of blocks) if (this.#free.length + this.#lent < this.#most) this.#free.push(block)
  }
}

/** What waits of one upload, in order. */
export class HeldBytes {
  readonly #all: HeldBlocks
  readonly #blocks: Buffer[] = []
  /** Of the first block, what has been read; of the last, what has been written. */
  #from = 0
  #to = BLOCK_BYTES

  constructor (all: HeldBlocks) {
    this.#all = all
  }

  get isEmpty (): boolean { return this.#blocks.length === 0 }

  push (piece: Buffer): void {
    for (let at = 0; at < piece.length;) {
      if (this.#to === BLOCK_BYTES) {
        this.#blocks.push(this.#all.take())
        this.#to = 0
      }
      const size = piece.copy(this.#blocks.at(-1)!, this.#to, at)
      this.#to += size
      at += size
    }
  }

  /** A copy of the next bytes, at most so many; undefined when there are none. */
  shift (most: number): Buffer | undefined {
    const block = this.#blocks[0]
    if (block === undefined) return undefined
    const end = this.#blocks.length === 1 ? this.#to : BLOCK_BYTES
    const bytes = Buffer.from(block.subarray(this.#from, Math.min(end, this.#from + most)))
    this.#from += bytes.length
    if (this.#from === end) {
      this.#all.give([this.#blocks.shift()!])
      this.#from = 0
      if (this.isEmpty) this.#to = BLOCK_BYTES
    }
    return bytes
  }

  clear (): void {
    this.#all.give(this.#blocks.splice(0))
    this.#from = 0
    this.#to = BLOCK_BYTES
  }
}
