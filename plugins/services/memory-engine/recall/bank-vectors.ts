import { differences } from './hamming.js'
import { products } from './products.js'
import { codeOf, codeWords, type Vector } from './vector-table.js'

/** A small bank holds its vectors as well as their signs: each row from the database costs more than comparing with it. */
const HELD_BYTES = 4 * 1024 * 1024
const FIRST_ROWS = 256

/** What is held in memory of a bank's vectors of one model: the signs of all of them, one after the other. */
export class BankVectors {
  readonly model: number
  readonly dimensions: number
  usedAt = performance.now()
  readonly #words: number
  #codes: Uint32Array
  #memories = new Uint32Array(FIRST_ROWS)
  #count = 0
  /** Of the numbers of memories: what is new is beyond it. */
  #largest = -1
  /** Null in a large bank. A memory that has none here has zeros. */
  #vectors: Vector | null
  /** 1 for those that the database had after so many changes. */
  #confirmed = new Uint8Array(FIRST_ROWS)
  #changes = -1

  constructor (model: number, dimensions: number) {
    this.model = model
    this.dimensions = dimensions
    this.#words = codeWords(dimensions)
    this.#codes = new Uint32Array(this.#words * FIRST_ROWS)
    this.#vectors = isFew(FIRST_ROWS, dimensions) ? new Float32Array(dimensions * FIRST_ROWS) : null
  }

  get count (): number { return this.#count }

  get bytes (): number {
    return this.#codes.byteLength + this.#memories.byteLength + this.#confirmed.byteLength + (this.#vectors?.byteLength ?? 0)
  }

  /** Whether the vectors themselves are held. */
  get isWhole (): boolean { return this.#vectors !== null }

  /** A memory that is new here. */
  append (memory: number, code: Uint32Array): void {
    if (this.#count === this.#memories.length) this.#grow()
    this.#codes.set(code, this.#count * this.#words)
    this.#memories[this.#count++] = memory
    this.#largest = Math.max(this.#largest, memory)
  }

  /** A vector was stored: of a new memory, or another one of a memory that was edited. */
  put (memory: number, vector: Vector): void {
    let at = memory > this.#largest ? -1 : this.#memories.subarray(0, this.#count).indexOf(memory)
    if (at < 0) {
      this.append(memory, codeOf(vector))
      at = this.#count - 1
    } else this.#codes.set(codeOf(vector), at * this.#words)
    this.#vectors?.set(vector, at * this.dimensions)
  }

  /** Takes the vectors of memories that are here. Both in the order of memories. */
  hold (rows: readonly { readonly memory: number, readonly vector: Vector }[]): void {
    let at = 0
    for (const { memory, vector } of rows) {
      while (at < this.#count && this.#memories[at]! < memory) at++
      if (at < this.#count && this.#memories[at] === memory) this.#vectors?.set(vector, at * this.dimensions)
    }
  }

  /** From here on without the vectors themselves. */
  letGo (): void {
    this.#vectors = null
  }

  /** Those with the fewest signs that differ; a few more than `wanted` where several differ equally. Positions. Pure. */
  nearest (query: Uint32Array, wanted: number, allowed: ReadonlySet<number> | null): number[] {
    const [memories, count] = [this.#memories, this.#count]
    const bits = this.#words * 32
    const far = bits + 1
    const distances = differences(query, this.#codes, count)
    const histogram = new Uint32Array(far + 1)
    for (let i = 0; i < count; i++) {
      if (allowed !== null && !allowed.has(memories[i]!)) distances[i] = far
      histogram[distances[i]!]!++
    }
    let limit = 0
    for (let sum = 0; limit <= bits; limit++) {
      sum += histogram[limit]!
      if (sum >= wanted) break
    }
    limit = Math.min(limit, bits)
    const found: number[] = []
    for (let i = 0; i < count; i++) if (distances[i]! <= limit) found.push(i)
    return found
  }

  memoryAt (position: number): number { return this.#memories[position]! }

  /** Those of these positions that are not known to be in the database after so many changes. */
  unconfirmed (positions: readonly number[], changes: number): readonly number[] {
    if (this.#changes !== changes) this.#confirmed.fill(0)
    this.#changes = changes
    return positions.filter(position => this.#confirmed[position] === 0)
  }

  isConfirmed (position: number): boolean { return this.#confirmed[position] === 1 }

  confirm (position: number): void {
    this.#confirmed[position] = 1
  }

  /** Cosines of the angles between the query and the vectors that are held at these positions. */
  cosines (positions: readonly number[], query: Vector): Float32Array {
    return products(query, this.#vectors!, positions)
  }

  #grow (): void {
    const rows = this.#memories.length * 2
    const [codes, memories, confirmed] = [new Uint32Array(rows * this.#words), new Uint32Array(rows), new Uint8Array(rows)]
    codes.set(this.#codes)
    memories.set(this.#memories)
    confirmed.set(this.#confirmed)
    this.#codes = codes
    this.#memories = memories
    this.#confirmed = confirmed
    if (this.#vectors === null) return
    if (!isFew(rows, this.dimensions)) return this.letGo()
    const vectors = new Float32Array(rows * this.dimensions)
    vectors.set(this.#vectors)
    this.#vectors = vectors
  }
}

function isFew (rows: number, dimensions: number): boolean {
  return rows * dimensions * Float32Array.BYTES_PER_ELEMENT <= HELD_BYTES
}
