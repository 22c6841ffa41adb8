import type { Condition } from '../memories/tag-filter.js'
import type { Store } from '../store/store.js'
import type { Neighbours } from './fuse.js'

/** On which side of the one that was found, and which memory. */
type Beside = readonly [side: number, seq: number]

/** As long as nothing is written. */
interface Held {
  readonly read: Map<number, Beside[]>
  changes: number
  writes: number
}

const MOST_HELD = 10_000
const stores = new WeakMap<Store, Held>()

function emptyHeld (): Held {
  return { read: new Map(), changes: -1, writes: -1 }
}

function heldOf (store: Store): Held {
  let held = stores.get(store)
  if (held === undefined) stores.set(store, held = emptyHeld())
  return held
}

/** What stands beside memories in their documents, as far as it is valid and holds the condition; each read once. */
export class NeighbourReader {
  readonly #store: Store
  readonly #condition: Condition | null
  /** Of recalls without a condition it is held from one to the next. */
  readonly #held: Held

  constructor (store: Store, condition: Condition | null) {
    this.#store = store
    this.#condition = condition
    this.#held = condition === null ? heldOf(store) : emptyHeld()
  }

  get #read (): Map<number, Beside[]> { return this.#held.read }

  /** Reads those of these memories, while something else is waited for. */
  readAhead (memories: readonly number[]): void {
    const { changes, writes } = this.#store
    const held = this.#held
    // a memory that is new may stand beside one that was read
    if (held.changes !== changes || held.writes !== writes || held.read.size > MOST_HELD) held.read.clear()
    held.changes = changes
    held.writes = writes
    const missing = memories.filter(seq => !this.#read.has(seq))
    if (missing.length === 0) return
    const where = this.#condition === null ? '' : `AND ${this.#condition.sql}`
    const rows = this.#store.lists<[found: number, side: number, seq: number]>('f.seq, n.chunk_index - c.chunk_index, m.seq',
      `FROM json_each(?) AS wanted JOIN memories f ON f.seq = wanted.value JOIN chunks c ON c.seq = f.chunk
       JOIN chunks n ON n.document = c.document AND n.chunk_index IN (c.chunk_index - 1, c.chunk_index + 1)
       JOIN memories m ON m.chunk = n.seq WHERE m.state = 'valid' ${where}`, [JSON.stringify(missing), ...this.#condition?.values ?? []])
    for (const seq of missing) this.#read.set(seq, [])
    for (const [found, side, seq] of rows) this.#read.get(found)!.push([side, seq])
  }

  of (memories: readonly number[]): Neighbours {
    this.readAhead(memories)
    const neighbours = new Map<number, [number[], number[]]>()
    for (const found of memories) {
      for (const [side, seq] of this.#read.get(found)!) {
        // the one that was found stands on the other side of its neighbour
        const sides = neighbours.get(seq) ?? [[], []]
        sides[side < 0 ? 1 : 0].push(found)
        neighbours.set(seq, sides)
      }
    }
    return neighbours
  }
}
