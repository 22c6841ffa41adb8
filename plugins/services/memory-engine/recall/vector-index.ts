import type { Core } from '../core.js'
import type { Condition } from '../memories/tag-filter.js'
import type { Store } from '../store/store.js'
import { BankVectors } from './bank-vectors.js'
import { codeOf, cosinesTo, vectorsOfBank, withVectors, type Vector } from './vector-table.js'

export interface Found {
  /** Of the memory. */
  readonly seq: number
  /** Cosine of the angle to the query. */
  readonly score: number
}

/** Best first, and of how many of the nearest by signs they are. */
interface Compared {
  readonly found: readonly Found[]
  readonly asked: number
}

/** So near is the last of the best `wanted`. Pure. */
function leastOf (cosines: Float32Array, wanted: number): number {
  // numbers in a typed array are sorted without a call for each pair
  return cosines.length <= wanted ? -Infinity : cosines.slice().sort()[cosines.length - wanted]!
}

function best (a: Found, b: Found): number {
  return b.score - a.score
}

/** This many are compared exactly for each that is wanted: the order by signs is a rough one. */
const OVERSAMPLING = 2
const LEAST_COMPARED = 300
/** No more are compared exactly where a filter leaves few of many. */
const PAGE = 5000
const LARGEST_BYTES = 256 * 1024 * 1024
/** Of the vectors of small banks, all of them together. */
const LARGEST_WHOLE_BYTES = 16 * 1024 * 1024
const IDLE_MS = 10 * 60_000

/**
 * Nearest neighbours. The signs of all vectors of a bank are held in memory, from its first search until it is idle; the best by
 * signs are then compared exactly: with vectors that a small bank holds too, else with those from the database, which in either
 * case says which memories are still there.
 */
export class VectorIndex {
  readonly #store: Store
  readonly #banks = new Map<number, BankVectors>()

  constructor (core: Core) {
    this.#store = core.store
    const timer = setInterval(() => this.#dropIdle(), IDLE_MS / 2)
    timer.unref()
    core.closing.addEventListener('abort', () => clearInterval(timer))
  }

  /** What of the process's memory it holds. */
  get bytes (): number {
    return [...this.#banks.values()].reduce((sum, { bytes }) => sum + bytes, 0)
  }

  search (bank: number, model: number, query: Vector, wanted: number, condition: Condition | null): readonly Found[] {
    const loaded = this.#load(bank, model, query.length)
    if (loaded.count === 0) return []
    const allowed = condition === null ? null : this.#allowed(bank, condition)
    const nearest = loaded.nearest(codeOf(query), Math.max(LEAST_COMPARED, wanted * OVERSAMPLING), allowed)
    const { found, asked } = loaded.isWhole ? this.#held(loaded, nearest, query, wanted) : this.#read(loaded, nearest, query)
    // deleted and edited memories leave their signs behind: with many of those it is read anew
    if (condition === null && found.length < asked * 0.8) this.#banks.delete(bank)
    return found.slice(0, wanted)
  }

  /** By vectors that are held: the database is asked for the best alone. */
  #held (loaded: BankVectors, nearest: readonly number[], query: Vector, wanted: number): Compared {
    const cosines = loaded.cosines(nearest, query)
    const first = this.#confirmed(loaded, nearest, cosines, wanted, leastOf(cosines, wanted))
    // of those that are no longer there others take the place
    const isEnough = first.found.length >= Math.min(wanted, nearest.length)
    return isEnough ? first : this.#confirmed(loaded, nearest, cosines, wanted, -Infinity)
  }

  /** The best `wanted` of those that are at least so near, page by page. */
  #confirmed (loaded: BankVectors, nearest: readonly number[], cosines: Float32Array, wanted: number, least: number): Compared {
    const compared: Array<Found & { readonly position: number }> = []
    for (const [i, position] of nearest.entries()) {
      if (cosines[i]! >= least) compared.push({ position, seq: loaded.memoryAt(position), score: cosines[i]! })
    }
    compared.sort(best)
    const found: Found[] = []
    let asked = 0
    for (; asked < compared.length && found.length < wanted; asked += wanted) {
      const page = compared.slice(asked, asked + wanted)
      this.#confirm(loaded, page.map(({ position }) => position))
      for (const each of page) if (loaded.isConfirmed(each.position)) found.push(each)
    }
    return { found, asked: Math.min(asked, compared.length) }
  }

  /** Asks the database for those of which it has not told since a memory changed. */
  #confirm (loaded: BankVectors, positions: readonly number[]): void {
    const unknown = loaded.unconfirmed(positions, this.#store.changes)
    if (unknown.length === 0) return
    const there = withVectors(this.#store, loaded.model, unknown.map(position => loaded.memoryAt(position)))
    for (const position of unknown) if (there.has(loaded.memoryAt(position))) loaded.confirm(position)
  }

  #read (loaded: BankVectors, nearest: readonly number[], query: Vector): Compared {
    const found: Found[] = []
    for (let from = 0; from < nearest.length; from += PAGE) {
      const memories = nearest.slice(from, from + PAGE).map(position => loaded.memoryAt(position))
      for (const [seq, score] of cosinesTo(this.#store, loaded.model, query, memories)) found.push({ seq, score })
    }
    return { found: found.sort(best), asked: nearest.length }
  }

  /** A vector was stored. */
  added (bank: number, model: number, memory: number, vector: Vector): void {
    const loaded = this.#banks.get(bank)
    if (loaded === undefined) return
    if (loaded.model !== model || loaded.dimensions !== vector.length) return void this.#banks.delete(bank)
    loaded.put(memory, vector)
  }

  #load (bank: number, model: number, dimensions: number): BankVectors {
    const known = this.#banks.get(bank)
    if (known?.model === model) {
      known.usedAt = performance.now()
      return known
    }
    this.#banks.delete(bank)
    const loaded = new BankVectors(model, dimensions)
    const whole = [...this.#banks.values()].filter(({ isWhole }) => isWhole)
    if (whole.reduce((sum, { bytes }) => sum + bytes, 0) > LARGEST_WHOLE_BYTES) loaded.letGo()
    for (let last = -1; ;) {
      const rows = this.#store.all<{ memory: number, code: ArrayBuffer }>(
        'SELECT memory, code FROM vector_codes WHERE bank = ? AND model = ? AND memory > ? ORDER BY memory LIMIT 10000', [bank, model, last])
      for (const { memory, code } of rows) loaded.append(memory, new Uint32Array(code))
      if (rows.length === 0) break
      last = rows.at(-1)!.memory
    }
    if (loaded.isWhole) loaded.hold(vectorsOfBank(this.#store, bank, model))
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

const indexes = new WeakMap<Core, VectorIndex>()

export function vectorIndexOf (core: Core): VectorIndex {
  let index = indexes.get(core)
  if (index === undefined) indexes.set(core, index = new VectorIndex(core))
  return index
}
