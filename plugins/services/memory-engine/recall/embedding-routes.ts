import type { Store } from '../store/store.js'
import { needBank } from '../store/bank-table.js'
import { BANK, json, type WireRoute } from '../wire/answer.js'
import { embedIdentity } from './model-calls.js'
import { knownModel } from './vector-table.js'

/** Beyond the wire: how far the vectors of a bank are. */
export const routes: readonly WireRoute[] = [{
  method: 'GET', path: `${BANK}/embeddings`, handler: ({ core, params }) => {
    const bank = needBank(core.store, params.bank_id!)
    const identity = embedIdentity(core)
    const counts = vectorCounts(core.store, bank.seq, identity === null ? -1 : knownModel(core.store, identity))
    return json({ bank_id: bank.bank_id, model: identity, ...counts })
  }
}]

interface VectorCounts {
  readonly done: number
  /** Those that wait for one. */
  readonly pending: number
  /** Those that have one of a former model. */
  readonly stale: number
  /** Those that the model never took. */
  readonly failed: number
}

/** How many valid memories have a vector of this model, or not. */
export function vectorCounts (store: Store, bank: number, model: number): VectorCounts {
  return store.get(
    `SELECT count(*) FILTER (WHERE vector_model = ?) AS done,
       count(*) FILTER (WHERE vector_model IS NOT ? AND embed_tries < 5) AS pending,
       count(*) FILTER (WHERE vector_model <> ?) AS stale,
       count(*) FILTER (WHERE vector_model IS NOT ? AND embed_tries >= 5) AS failed
     FROM memories WHERE bank = ? AND state = 'valid'`, [model, model, model, model, bank])!
}
