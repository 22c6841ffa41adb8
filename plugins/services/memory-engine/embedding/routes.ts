import type { Store } from '../store/store.js'
import { needBank } from '../store/bank-table.js'
import { BANK, json, type WireRoute } from '../wire/answer.js'
import { embedIdentity } from '../recall/model-calls.js'
import { knownModel } from '../recall/vector-table.js'
import { cancelledUpto } from './cancelled.js'
import { MOST_TRIES } from './waiting.js'

/** Beyond the wire: how far the vectors of a bank are. */
export const routes: readonly WireRoute[] = [{
  method: 'GET', path: `${BANK}/embeddings`, handler: ({ core, params }) => {
    const bank = needBank(core.store, params.bank_id!)
    const identity = embedIdentity(core)
    const model = identity === null ? -1 : knownModel(core.store, identity)
    const counts = vectorCounts(core.store, bank.seq, model, cancelledUpto(bank, identity))
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
  /** Those that wait no more, as a client cancelled the operation that was to embed them. */
  readonly cancelled: number
}

/** How many valid memories have a vector of this model, or not. */
export function vectorCounts (store: Store, bank: number, model: number, upto: number): VectorCounts {
  return store.get(
    `SELECT count(*) FILTER (WHERE has) AS done,
       count(*) FILTER (WHERE NOT has AND embed_tries < ${MOST_TRIES} AND NOT stays) AS pending,
       count(*) FILTER (WHERE vector_model <> ?) AS stale,
       count(*) FILTER (WHERE NOT has AND embed_tries >= ${MOST_TRIES}) AS failed,
       count(*) FILTER (WHERE NOT has AND embed_tries < ${MOST_TRIES} AND stays) AS cancelled
     FROM (SELECT vector_model, embed_tries, vector_model IS ? AS has,
         seq <= ? AND seq NOT IN (SELECT memory FROM embed_anyway) AS stays
       FROM memories WHERE bank = ? AND state = 'valid')`, [model, model, upto, bank])!
}
