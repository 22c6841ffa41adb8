import type { Core } from '../core.js'
import type { Condition } from '../memories/tag-filter.js'
import type { Store } from '../store/store.js'
import { codeOf, codeWords, dot, vectorsOf, type Vector } from './vector-table.js'

export interface Found {
  /** Of the memory. */
  readonly seq: number
  /** Cosine of the angle to the query. */
  readonly score: number
}

/** The signs of a bank's vectors of one model, one after the other. */
interface Loaded {
  readonly model: number
  readonly words: number
  codes: Uint32Array
  memories: Uint32Array
  count: number
  usedAt: number
}

/** This many are compared exactly for each that is wanted: the order by signs is a rough one. */
const OVERSAMPLING = 2
const LEAST_COMPARED = 300
/** No more are compared exactly where a filter leaves few of many. */
const PAGE = 5000
const LARGEST_BYTES = 256 * 1024 * 1024
const IDLE_MS = 10 * 60_000

/**
 * Nearest neighbours. The signs of all vectors of a bank are held in memory, from its first search until it is idle; the best by
 * signs are then compared exactly with their vectors from the database, which also says which of them are still there.
 */
export class VectorIndex {
  readonly #store: Store
  readonly #banks = new Map<number, Loaded>()

  constructor (core: Core) {
    this.#store = core.store
    const timer = setInterval(() => this.#dropIdle(), IDLE_MS / 2)
    timer.unref()
    core.closing.addEventListener('abort', () => clearInterval(timer))
  }

  /** What of the process's memory it holds. */
  get bytes (): number {
    return [...this.#banks.values()].reduce((sum, { codes, memories }) => sum + codes.byteLength + memories.byteLength, 0)
  }

  search (bank: number, model: number, query: Vector, wanted: number, condition: Condition | null): readonly Found[] {
    const loaded = this.#load(bank, model, query.length)
    if (loaded.count === 0) return []
    const allowed = condition === null ? null : this.#allowed(bank, condition)
    const compared = Math.max(LEAST_COMPARED, wanted * OVERSAMPLING)
    const memories = nearest(loaded, codeOf(query), compared, allowed)
    const found: Found[] = []
    for (let from = 0; from < memories.length; from += PAGE) {
      for (const { seq, vector } of vectorsOf(this.#store, model, memories.slice(from, from + PAGE), condition)) {
        found.push({ seq, score: dot(query, vector) })
      }
    }
    // deleted and edited memories leave their signs behind: with many of those it is read anew
    if (condition === null && found.length < memories.length * 0.8) this.#banks.delete(bank)
    return found.sort((a, b) => b.score - a.score).slice(0, wanted)
  }

  /** A vector was stored. */
  added (bank: number, model: number, memory: number, vector: Vector): void {
    const loaded = this.#banks.get(bank)
    if (loaded === undefined) return
    if (loaded.model !== model) return void this.#banks.delete(bank)
    append(loaded, memory, codeOf(vector))
  }

  #load (bank: number, model: number, dimensions: number): Loaded {
    const known = this.#banks.get(bank)
    if (known?.model === model) {
      known.usedAt = performance.now()
      return known
    }
    const words = codeWords(dimensions)
    const loaded: Loaded = {
      model, words, codes: new Uint32Array(words * 1024), memories: new Uint32Array(1024), count: 0, usedAt: performance.now()
    }
    for (let last = -1; ;) {
      const rows = this.#store.all<{ memory: number, code: ArrayBuffer }>(
        'SELECT memory, code FROM vector_codes WHERE bank = ? AND model = ? AND memory > ? ORDER BY memory LIMIT 10000', [bank, model, last])
      for (const { memory, code } of rows) append(loaded, memory, new Uint32Array(code))
      if (rows.length === 0) break
      last = rows.at(-1)!.memory
    }
    this.#banks.delete(bank)
    this.#banks.set(bank, loaded)
    while (this.bytes > LARGEST_BYTES && this.#banks.size > 1) {
      const [oldest] = [...this.#banks].filter(([other]) => other !== bank).sort(([, a], [, b]) => a.usedAt - b.usedAt)
      this.#banks.delete(oldest![0])
    }
    return loaded
  }

  #allowed (bank: number, condition: Condition): ReadonlySet<number> {
    return new Set(this.#store.all<{ seq: number }>(
      `SELECT m.seq AS seq FROM memories m WHERE m.bank = ? AND m.state = 'valid' AND ${condition.sql}`, [bank, ...condition.values]
    ).map(({ seq }) => seq))
  }

  #dropIdle (): void {
    for (const [bank, { usedAt }] of this.#banks) if (performance.now() - usedAt > IDLE_MS) this.#banks.delete(bank)
  }
}

function append (loaded: Loaded, memory: number, code: Uint32Array): void {
  if (loaded.count === loaded.memories.length) {
    const codes = new Uint32Array(loaded.codes.length * 2)
    codes.set(loaded.codes)
    const memories = new Uint32Array(loaded.memories.length * 2)
    memories.set(loaded.memories)
    loaded.codes = codes
    loaded.memories = memories
  }
  loaded.codes.set(code, loaded.count * loaded.words)
  loaded.memories[loaded.count++] = memory
}

/** Those with the fewest signs that differ; a few more than `wanted` where several differ equally. Pure. */
function nearest (
  { codes, memories, words, count }: Loaded, query: Uint32Array, wanted: number, allowed: ReadonlySet<number> | null
): number[] {
  const bits = words * 32
  const far = bits + 1
  const distances = new Uint16Array(count)
  const histogram = new Uint32Array(far + 1)
  for (let i = 0, at = 0; i < count; i++, at += words) {
    let distance = far
    if (allowed === null || allowed.has(memories[i]!)) {
      distance = 0
      for (let word = 0; word < words; word++) {
        let x = codes[at + word]! ^ query[word]!
        x -= (x >>> 1) & 0x55555555
        x = (x & 0x33333333) + ((x >>> 2) & 0x33333333)
        distance += Math.imul((x + (x >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
      }
    }
    distances[i] = distance
    histogram[distance]!++
  }
  let limit = 0
  for (let sum = 0; limit <= bits; limit++) {
    sum += histogram[limit]!
    if (sum >= wanted) break
  }
  limit = Math.min(limit, bits)
  const found: number[] = []
  for (let i = 0; i < count; i++) if (distances[i]! <= limit) found.push(memories[i]!)
  return found
}

const indexes = new WeakMap<Core, VectorIndex>()

export function vectorIndexOf (core: Core): VectorIndex {
  let index = indexes.get(core)
  if (index === undefined) indexes.set(core, index = new VectorIndex(core))
  return index
}
