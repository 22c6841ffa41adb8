import type { Core } from '../core.js'
import type { BankRow } from '../store/bank-table.js'
import { dropChunkOf } from '../store/document-table.js'
import { deleteMemories, type MemoryRow } from '../store/memory-table.js'
import { clearTextIndex } from '../store/text-index.js'

/** One memory, with the part of its document that it was. */
export function deleteForGood (core: Core, row: MemoryRow): void {
  core.store.transaction(() => {
    deleteMemories(core.store, [row])
    dropChunkOf(core.store, row, core.now())
  })
}

/**
 * Memories, documents and entities of a bank; its configuration stays. Called in a transaction. Returns how many memories
 * went.
 */
export function dropEverything ({ store }: Core, bank: BankRow): number {
  const { count } = store.get<{ count: number }>('SELECT count(*) AS count FROM memories WHERE bank = ?', [bank.seq])!
  clearTextIndex(store, bank.seq)
  for (const table of ['memories', 'documents', 'entities']) store.run(`DELETE FROM ${table} WHERE bank = ?`, [bank.seq])
  return count
}
