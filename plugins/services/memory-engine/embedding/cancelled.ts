import type { Core } from '../core.js'
import type { Operation } from '../operations/operation.js'
import { embedIdentity } from '../recall/model-calls.js'
import { findBank, type BankRow } from '../store/bank-table.js'

/*
 * What a cancelled embedding leaves out is a number and a model in the row of its bank: the memories up to there that have no
 * vector of the model. So a cancel costs the same whatever waits, and stands in the transaction of its answer. What came to the
 * bank or was edited since stands in `embed_anyway`.
 */

/** The last memory that is left out; 0 if none is. Pure. */
export function cancelledUpto ({ embed_cancelled: model, embed_cancelled_upto: upto }: BankRow, identity: string | null): number {
  return identity === null || identity === model ? upto ?? 0 : 0
}

/** Called in the transaction that cancels it. */
export function leaveOut (core: Core, { bankId, result }: Operation): void {
  const { store } = core
  const bank = findBank(store, bankId)
  if (bank === undefined) return
  const identity = embedIdentity(core) ?? result.model as string
  store.run('UPDATE banks SET embed_cancelled = ?, embed_cancelled_upto = (SELECT coalesce(max(seq), 0) FROM memories) WHERE seq = ?',
    [identity, bank.seq])
  forgetAnyway(core, 'bank = ?', [bank.seq])
}

/** Called in the transaction that has it tried again. */
export function takeIn (core: Core, { bankId, status }: Operation): void {
  if (status !== 'cancelled') return
  core.store.run('UPDATE banks SET embed_cancelled = NULL, embed_cancelled_upto = NULL WHERE bank_id = ?', [bankId])
}

/** What was left out was left out for one model, and is embedded by another one. */
export function takeInForOthers (core: Core, identity: string): void {
  core.store.transaction(() => {
    core.store.run('UPDATE banks SET embed_cancelled = NULL, embed_cancelled_upto = NULL WHERE embed_cancelled <> ?', [identity])
    forgetAnyway(core, 'bank IN (SELECT seq FROM banks WHERE embed_cancelled IS NULL)', [])
  })
}

function forgetAnyway ({ store }: Core, where: string, values: readonly number[]): void {
  store.run(`DELETE FROM embed_anyway WHERE memory IN (SELECT seq FROM embed_anyway CROSS JOIN memories ON seq = memory WHERE ${where})`, values)
}
