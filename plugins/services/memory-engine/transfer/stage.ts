import type { Core } from '../core.js'
import { deleteBank, ensureBank, findBank, type BankRow } from '../store/bank-table.js'

/** No path leads to a bank whose id has a slash. */
const PREFIX = '/import/'

/** A bank to be filled, for an operation: what an earlier try of it left is gone. */
export function newStage (core: Core, operation: string): BankRow {
  dropStage(core, operation)
  return ensureBank(core.store, `${PREFIX}${operation}`, core.now())
}

export function dropStage ({ store }: Core, operation: string): void {
  const left = findBank(store, `${PREFIX}${operation}`)
  if (left !== undefined) deleteBank(store, left)
}

/** Those of operations that are over or gone. */
export function sweepStages ({ store }: Core): void {
  const left = store.all<BankRow>(`SELECT * FROM banks WHERE bank_id LIKE '${PREFIX}%' AND NOT EXISTS
    (SELECT 1 FROM operations WHERE '${PREFIX}' || id = bank_id AND status IN ('pending', 'processing'))`)
  for (const bank of left) deleteBank(store, bank)
}
