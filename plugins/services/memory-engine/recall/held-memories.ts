import type { Core } from '../core.js'
import type { FactType } from '../store/memory-table.js'
import type { Store } from '../store/store.js'
import { recalledRows, type RecalledRow } from './recalled-row.js'
import { tokensIn } from './tokens.js'
import { BEGINNING, firstWord } from './words.js'

/** What the order needs of a candidate that is still valid. */
export interface Known {
  readonly mentionedAt: number | null
  readonly type: FactType
  readonly tokens: number
  /** That its text begins with. */
  readonly firstWord: string
}

interface Held {
  readonly known: Known
  row: RecalledRow | null
}

/** Of either half: those that were asked for last, and those before. */
const LARGEST_BYTES = 4 * 1024 * 1024
/** Of one without its row. */
const BYTES = 200

/**
 * What recalls have read of valid memories, for those that come after: other questions find many of the same ones. It is let go
 * when any memory that is there changes, and when it grows too large, the longest unasked first.
 */
export class HeldMemories {
  readonly #store: Store
  #young = new Map<number, Held>()
  #old = new Map<number, Held>()
  #bytes = 0
  #changes = -1

  constructor (store: Store) {
    this.#store = store
  }

  /** Of those that are valid. */
  known (memories: readonly number[]): Map<number, Known> {
    this.#refresh()
    const found = new Map<number, Known>()
    const missing: number[] = []
    for (const seq of memories) {
      const held = this.#find(seq)
      if (held === undefined) missing.push(seq)
      else found.set(seq, held.known)
    }
    const rows = missing.length === 0 ? [] : this.#store.lists<[number, number | null, FactType, number, string]>(
      `m.seq, m.mentioned_at, m.fact_type, length(m.text), substr(m.text, 1, ${BEGINNING})`,
      `FROM json_each(?) AS wanted CROSS JOIN memories m ON m.seq = wanted.value WHERE m.state = 'valid'`, [JSON.stringify(missing)])
    for (const [seq, mentionedAt, type, length, beginning] of rows) {
      const known = { mentionedAt, type, tokens: tokensIn(length), firstWord: firstWord(beginning) }
      found.set(seq, known)
      this.#hold(seq, { known, row: null }, BYTES)
    }
    return found
  }

  /** The same of their rows. Those that `known` was not asked for are not held. */
  rows (memories: readonly number[]): Map<number, RecalledRow> {
    this.#refresh()
    const found = new Map<number, RecalledRow>()
    const missing: number[] = []
    for (const seq of memories) {
      const row = this.#find(seq)?.row
      if (row == null) missing.push(seq)
      else found.set(seq, row)
    }
    for (const [seq, row] of missing.length === 0 ? [] : recalledRows(this.#store, missing)) {
      found.set(seq, row)
      const held = this.#find(seq)
      if (held === undefined) continue
      held.row = row
      this.#hold(seq, held, bytesOf(row))
    }
    return found
  }

  #find (seq: number): Held | undefined {
    const young = this.#young.get(seq)
    if (young !== undefined) return young
    const old = this.#old.get(seq)
    if (old !== undefined) this.#hold(seq, old, BYTES + (old.row === null ? 0 : bytesOf(old.row)))
    return old
  }

  #hold (seq: number, held: Held, bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes > LARGEST_BYTES) {
      this.#old = this.#young
      this.#young = new Map()
      this.#bytes = bytes
    }
    this.#young.set(seq, held)
  }

  #refresh (): void {
    const { changes } = this.#store
    if (this.#changes === changes) return
    this.#changes = changes
    this.#young.clear()
    this.#old.clear()
    this.#bytes = 0
  }
}

/** About what a row takes, with what answers say of it. */
function bytesOf ({ text, context, entities, tags, metadata }: RecalledRow): number {
  return 800 + 4 * (text.length + (context?.length ?? 0) + entities.length + tags.length + metadata.length)
}

const memories = new WeakMap<Core, HeldMemories>()

export function heldMemoriesOf (core: Core): HeldMemories {
  let held = memories.get(core)
  if (held === undefined) memories.set(core, held = new HeldMemories(core.store))
  return held
}
