import type { Store } from '../store/store.js'
import { turn } from '../store/turn.js'

/*
 * Memories that wait for a vector are told by the model of the one that they have (none, or another than the present one) and by
 * how often it was asked for.
 */

/** A text that its model refused so often is not tried again. */
export const MOST_TRIES = 5
/** In place of a number of tries: what is cancelled. */
export const CANCELLED = 100

export interface Waiting {
  readonly seq: number
  readonly text: string
  readonly embed_tries: number
}

const ROWS_AT_ONCE = 500

const STANDING = `vector_model IS ? AND bank = ? AND state = 'valid'`
const WAITING = `${STANDING} AND embed_tries < ${MOST_TRIES}`

/** Of memories without a vector and then of those of former models, the newest model first. */
export function othersThan (store: Store, model: number): ReadonlyArray<number | null> {
  return [null, ...store.all<{ seq: number }>('SELECT seq FROM embed_models WHERE seq <> ? ORDER BY seq DESC', [model]).map(({ seq }) => seq)]
}

/** Banks that have memories with vectors of a model, or without any; not those that are deleted or not yet made. */
export function banksWith (store: Store, model: number | null): readonly number[] {
  return store.all<{ bank: number }>(`WITH RECURSIVE found (bank) AS (
      SELECT min(bank) FROM memories WHERE vector_model IS ?
      UNION ALL SELECT (SELECT min(bank) FROM memories WHERE vector_model IS ? AND bank > found.bank) FROM found WHERE found.bank IS NOT NULL
    ) SELECT found.bank FROM found JOIN banks ON banks.seq = found.bank WHERE banks.bank_id NOT GLOB '/*'`, [model, model]).map(({ bank }) => bank)
}

/** At most so many of a bank, those without a vector first. */
export function waitingIn (store: Store, bank: number, model: number, most: number): readonly Waiting[] {
  const found: Waiting[] = []
  for (const other of othersThan(store, model)) {
    if (found.length === most) break
    found.push(...store.all<Waiting>(`SELECT seq, text, embed_tries FROM memories WHERE ${WAITING} LIMIT ?`, [other, bank, most - found.length]))
  }
  return found
}

export function countWaiting (store: Store, bank: number, model: number): number {
  return othersThan(store, model).reduce<number>((sum, other) =>
    sum + store.get<{ count: number }>(`SELECT count(*) AS count FROM memories WHERE ${WAITING}`, [other, bank])!.count, 0)
}

/** Whether more than so many wait. */
export function moreWait (store: Store, bank: number, model: number, than: number): boolean {
  let left = than + 1
  for (const other of othersThan(store, model)) {
    left -= store.get<{ count: number }>(`SELECT count(*) AS count FROM (SELECT 1 FROM memories WHERE ${WAITING} LIMIT ?)`, [other, bank, left])!.count
    if (left === 0) return true
  }
  return false
}

/** Embedding was cancelled: those that wait now are not embedded by this model. In the transaction that cancels. */
export function cancelWaiting (store: Store, bankId: string, identity: string): void {
  store.run('UPDATE banks SET embed_cancelled = ?, embed_cancelled_upto = (SELECT max(seq) FROM memories) WHERE bank_id = ?', [identity, bankId])
}

/** Marks what was cancelled, slice by slice; a killed process goes on with it when it is back. */
export async function markCancelled (store: Store, identity: string, model: number, signal: AbortSignal): Promise<void> {
  const banks = store.all<{ seq: number, upto: number }>(`SELECT seq, embed_cancelled_upto AS upto FROM banks
    WHERE embed_cancelled = ? AND embed_cancelled_upto IS NOT NULL`, [identity])
  for (const { seq, upto } of banks) {
    for (const other of othersThan(store, model)) {
      // until it is tried again
      const isCancelled = `${WAITING} AND seq <= ? AND bank IN (SELECT seq FROM banks WHERE embed_cancelled_upto IS NOT NULL)`
      await inSlices(store, `${CANCELLED}`, isCancelled, [other, seq, upto], signal)
    }
    store.run('UPDATE banks SET embed_cancelled_upto = NULL WHERE seq = ? AND embed_cancelled_upto = ?', [seq, upto])
  }
}

/** What was cancelled in a bank waits again. */
export async function resumeCancelled (store: Store, bank: number, signal: AbortSignal): Promise<void> {
  // first, so that nothing is marked beside
  store.run('UPDATE banks SET embed_cancelled = NULL, embed_cancelled_upto = NULL WHERE seq = ?', [bank])
  for (const model of othersThan(store, -1)) {
    await inSlices(store, '0', `${STANDING} AND embed_tries = ${CANCELLED}`, [model, bank], signal)
  }
}

/** Another model may take what the one before did not: all wait again but for what was cancelled with this one. */
export async function resumeRefused (store: Store, identity: string, signal: AbortSignal): Promise<void> {
  store.run('UPDATE banks SET embed_cancelled = NULL, embed_cancelled_upto = NULL WHERE embed_cancelled <> ?', [identity])
  const kept = new Set(store.all<{ seq: number }>('SELECT seq FROM banks WHERE embed_cancelled = ?', [identity]).map(({ seq }) => seq))
  for (const model of othersThan(store, -1)) {
    for (const bank of banksWith(store, model)) {
      const less = kept.has(bank) ? ` AND embed_tries < ${CANCELLED}` : ''
      await inSlices(store, '0', `${STANDING} AND embed_tries > 0${less}`, [model, bank], signal)
    }
  }
}

async function inSlices (
  store: Store, tries: string, where: string, values: ReadonlyArray<number | null>, signal: AbortSignal
): Promise<void> {
  const slice = `UPDATE memories SET embed_tries = ${tries} WHERE seq IN (SELECT seq FROM memories WHERE ${where} LIMIT ${ROWS_AT_ONCE})`
  while (store.run(slice, [...values]).changes === ROWS_AT_ONCE) {
    await turn()
    signal.throwIfAborted()
  }
}
