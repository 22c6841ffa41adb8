import { knownModel } from '../recall/vector-table.js'
import type { BankRow } from '../store/bank-table.js'
import type { Store } from '../store/store.js'
import { cancelledUpto } from './cancelled.js'

export const MOST_TRIES = 5

export interface Waiting {
  readonly seq: number
  readonly bank: number
  readonly text: string
  readonly embed_tries: number
}

/** The words of a partial index. */
const OPEN = `state = 'valid' AND embed_tries < ${MOST_TRIES}`
/** Those whose number says nothing about whether they are left out. */
const ANYWAY = `FROM embed_anyway CROSS JOIN memories ON memories.seq = memory
  WHERE bank = ? AND memories.seq <= ? AND vector_model IS NOT ? AND ${OPEN}`

/** Valid memories without a vector of a model, but for those that it never took and those that a cancelled operation left out. */
export class WaitingMemories {
  readonly #store: Store
  readonly #identity: string
  readonly #model: number
  /** What they may have instead: no vector, or one of another model. */
  readonly #former: ReadonlyArray<number | null>

  constructor (store: Store, identity: string) {
    this.#store = store
    this.#identity = identity
    this.#model = knownModel(store, identity)
    this.#former = [null, ...store.all<{ seq: number }>('SELECT seq FROM embed_models WHERE seq <> ? ORDER BY seq', [this.#model]).map(({ seq }) => seq)]
  }

  /** Banks that may have some; what else a bank has is not gone through. */
  * banks (): Generator<number> {
    const seen = new Set<number>()
    for (const former of this.#former) {
      for (let last: number | undefined = 0; last !== undefined;) {
        last = this.#store.get<{ bank: number }>(
          `SELECT bank FROM memories WHERE vector_model IS ? AND bank > ? AND ${OPEN} ORDER BY bank LIMIT 1`, [former, last])?.bank
        if (last === undefined || seen.has(last)) continue
        seen.add(last)
        yield last
      }
    }
  }

  /** The first of a bank: new and edited ones, then those of former models; of either, what was refused comes last. */
  of (bank: BankRow, limit: number): readonly Waiting[] {
    const upto = cancelledUpto(bank, this.#identity)
    const found: Waiting[] = upto === 0 ? [] : this.#store.all<Waiting>(
      `SELECT memories.seq, bank, text, embed_tries ${ANYWAY} ORDER BY embed_tries LIMIT ?`, [bank.seq, upto, this.#model, limit])
    for (const former of this.#former) {
      for (let tries = 0; tries < MOST_TRIES && found.length < limit; tries++) {
        found.push(...this.#store.all<Waiting>(`SELECT seq, bank, text, embed_tries FROM memories
          WHERE vector_model IS ? AND bank = ? AND embed_tries = ? AND seq > ? AND ${OPEN} ORDER BY seq LIMIT ?`,
        [former, bank.seq, tries, upto, limit - found.length]))
      }
    }
    return found
  }

  count (bank: BankRow): number {
    const upto = cancelledUpto(bank, this.#identity)
    const counted = (sql: string, values: ReadonlyArray<number | null>): number => this.#store.get<{ n: number }>(sql, values)!.n
    const anyway = upto === 0 ? 0 : counted(`SELECT count(*) AS n ${ANYWAY}`, [bank.seq, upto, this.#model])
    return this.#former.reduce<number>((sum, former) => sum + counted(
      `SELECT count(*) AS n FROM memories WHERE vector_model IS ? AND bank = ? AND seq > ? AND ${OPEN}`, [former, bank.seq, upto]), anyway)
  }
}
