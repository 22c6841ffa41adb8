import type { Core } from '../core.js'
import { dropInSlices } from '../banks/deleted.js'
import { ensureBank, findBank, type BankRow } from '../store/bank-table.js'
import { deleteMemories, type MemoryRow } from '../store/memory-table.js'
import { turn } from '../store/turn.js'

/** No path leads to a bank whose id has a slash. */
const PREFIX = '/import/'
const ROWS_AT_ONCE = 100

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
  if (stage !== undefined) await drop(core, stage)
}

async function drop (core: Core, stage: BankRow): Promise<void> {
  const { store, closing } = core
  // of a document that stays behind, what has moved already: with its row it would go without its index rows
  const moved = `SELECT memories.* FROM memories JOIN documents ON documents.seq = memories.document
    WHERE documents.bank = ? AND memories.bank <> documents.bank LIMIT ${ROWS_AT_ONCE}`
  for (let rows = store.all<MemoryRow>(moved, [stage.seq]); rows.length > 0; rows = store.all<MemoryRow>(moved, [stage.seq])) {
    if (closing.aborted) return
    store.transaction(() => deleteMemories(store, rows))
    await turn()
  }
  await dropInSlices(core, stage)
}

/** Those of operations that are over or gone. One that failed while it was being committed may be tried again. */
export async function sweepStages (core: Core): Promise<void> {
  const left = core.store.all<BankRow>(`SELECT * FROM banks WHERE bank_id LIKE '${PREFIX}%' AND NOT EXISTS
    (SELECT 1 FROM operations WHERE '${PREFIX}' || id = banks.bank_id AND (status IN ('pending', 'processing')
      OR (status = 'failed' AND json_extract(payload, '$.held') IS NOT NULL)))`)
  for (const bank of left) await drop(core, bank)
}
