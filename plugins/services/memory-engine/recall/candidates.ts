import type { FactType } from '../store/memory-table.js'
import type { Store } from '../store/store.js'
import { recalledRows, type RecalledRow } from './recalled-row.js'
import { tokensIn } from './tokens.js'

/** What the order needs of a candidate that is still valid. */
export interface Known {
  readonly mentionedAt: number | null
  readonly type: FactType
  readonly tokens: number
}

/**
 * What one recall reads of its candidates, each once. What was read before anything changed in the database is read again, so
 * that a recall tells nothing of a memory that was deleted while a model was waited for.
 */
export class Candidates {
  readonly #store: Store
  readonly #known = new Map<number, Known>()
  readonly #rows = new Map<number, RecalledRow>()
  /** Those that were looked for, valid or not. */
  readonly #looked = new Set<number>()
  #writes = -1

  constructor (store: Store) {
    this.#store = store
  }

  /** Reads those of the first ones that an answer of so many tokens has room for, while something else is waited for. */
  readAhead (memories: readonly number[], maxTokens: number): void {
    const known = this.known(memories)
    const valid = memories.filter(seq => known.has(seq))
    this.rows(valid.slice(0, fittingCount(valid.map(seq => known.get(seq)!.tokens), maxTokens)))
  }

  /** Of those that are valid, and maybe of others that were asked for before. */
  known (memories: Iterable<number>): ReadonlyMap<number, Known> {
    this.#refresh()
    const missing = [...memories].filter(seq => !this.#looked.has(seq))
    for (const seq of missing) this.#looked.add(seq)
    const rows = missing.length === 0 ? [] : this.#store.lists<[number, number | null, FactType, number]>(
      'm.seq, m.mentioned_at, m.fact_type, length(m.text)',
      `FROM json_each(?) AS wanted CROSS JOIN memories m ON m.seq = wanted.value WHERE m.state = 'valid'`, [JSON.stringify(missing)])
    for (const [seq, mentionedAt, type, length] of rows) this.#known.set(seq, { mentionedAt, type, tokens: tokensIn(length) })
    return this.#known
  }

  /** The same of their rows. */
  rows (memories: readonly number[]): ReadonlyMap<number, RecalledRow> {
    this.#refresh()
    const missing = memories.filter(seq => !this.#rows.has(seq))
    if (missing.length > 0) for (const [seq, row] of recalledRows(this.#store, missing)) this.#rows.set(seq, row)
    return this.#rows
  }

  #refresh (): void {
    if (this.#writes === this.#store.writes) return
    this.#writes = this.#store.writes
    this.#looked.clear()
    this.#known.clear()
    this.#rows.clear()
  }
}

/** How many of these fit into so many tokens, in their order: the first one whatever its size, and none into no tokens. Pure. */
export function fittingCount (tokens: readonly number[], maxTokens: number): number {
  if (maxTokens === 0) return 0
  let sum = 0
  const over = tokens.findIndex((each, i) => (sum += each) > maxTokens && i > 0)
  return over < 0 ? tokens.length : over
}
