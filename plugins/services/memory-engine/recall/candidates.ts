import type { Core } from '../core.js'
import type { Store } from '../store/store.js'
import { heldMemoriesOf, type HeldMemories, type Known } from './held-memories.js'
import type { RecalledRow } from './recalled-row.js'

/**
 * What one recall reads of its candidates, each once. What was read before a memory changed is read again, so that a recall
 * tells nothing of one that was deleted while a model was waited for.
 */
export class Candidates {
  readonly #store: Store
  readonly #held: HeldMemories
  readonly #known = new Map<number, Known>()
  readonly #rows = new Map<number, RecalledRow>()
  /** Those that were looked for, valid or not. */
  readonly #looked = new Set<number>()
  #changes = -1

  constructor (core: Core) {
    this.#store = core.store
    this.#held = heldMemoriesOf(core)
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
    if (missing.length > 0) for (const [seq, known] of this.#held.known(missing)) this.#known.set(seq, known)
    return this.#known
  }

  /** The same of their rows. */
  rows (memories: readonly number[]): ReadonlyMap<number, RecalledRow> {
    this.#refresh()
    const missing = memories.filter(seq => !this.#rows.has(seq))
    if (missing.length > 0) for (const [seq, row] of this.#held.rows(missing)) this.#rows.set(seq, row)
    return this.#rows
  }

  #refresh (): void {
    const { changes } = this.#store
    if (this.#changes === changes) return
    this.#changes = changes
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
