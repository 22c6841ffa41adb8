import type { Core } from '../core.js'
import { dropInSlices } from '../banks/deleted.js'
import { ensureBank, findBank, type BankRow } from '../store/bank-table.js'

/** No path leads to a bank whose id has a slash. */
const PREFIX = '/import/'

/** A bank to be filled, for an operation: what an earlier try of it left is gone. */
export async function newStage (core: Core, operation: string): Promise<BankRow> {
  await dropStage(core, operation)
  return ensureBank(core.store, `${PREFIX}${operation}`, core.now())
}

export function findStage ({ store }: Core, operation: string): BankRow | undefined {
  return findBank(store, `${PREFIX}${operation}`)
}

/** Slice by slice: other requests are served between them. */
export async function dropStage (core: Core, operation: string): Promise<void> {
  const stage = findStage(core, operation)
  if (stage !== undefined) await dropInSlices(core, stage)
}

/** Those of operations that are over or gone. One that failed while it was being committed may be tried again. */
export async function sweepStages (core: Core): Promise<void> {
  const left = core.store.all<BankRow>(`SELECT * FROM banks WHERE bank_id LIKE '${PREFIX}%' AND NOT EXISTS
    (SELECT 1 FROM operations WHERE '${PREFIX}' || id = banks.bank_id AND (status IN ('pending', 'processing')
      OR (status = 'failed' AND json_extract(payload, '$.held') IS NOT NULL)))`)
  for (const bank of left) await dropInSlices(core, bank)
}
