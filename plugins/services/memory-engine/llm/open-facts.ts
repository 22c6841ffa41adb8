import type { BankRow } from '../store/bank-table.js'
import type { MemoryRow } from '../store/memory-table.js'
import type { Store } from '../store/store.js'

/** Whether a memory `m` is the text of its chunk `c`: one that gives way to the facts in it. */
export const IS_WHOLE_CHUNK = `m.edited_at IS NULL AND trim(c.text, ' ' || char(9, 10, 13)) = m.text`

/**
 * Facts that no consolidation has seen. What is to give way to facts waits for them: with it would go what was made of it, and of
 * others.
 */
const OPEN = `FROM memories m INDEXED BY memories_open LEFT JOIN chunks c ON c.seq = m.chunk
  WHERE m.bank = ? AND m.state = 'valid' AND m.fact_type <> 'observation' AND m.consolidated_at IS NULL AND m.consolidation_failed_at IS NULL
    AND (c.seq IS NULL OR NOT (${IS_WHOLE_CHUNK}) OR coalesce(m.document, 0) NOT IN (
      SELECT d.seq FROM operations o INDEXED BY operations_kinds JOIN documents d ON d.bank = ? AND d.document_id = o.document_id
      WHERE o.bank_id = ? AND o.type = 'graph_maintenance' AND o.status IN ('pending', 'processing')))`

type Bank = Pick<BankRow, 'seq' | 'bank_id'>

/** The oldest of them, in their order. */
export function openFacts (store: Store, { seq: bank, bank_id: bankId }: Bank, limit: number): readonly MemoryRow[] {
  return store.all<MemoryRow>(`SELECT m.* ${OPEN} ORDER BY m.seq LIMIT ?`, [bank, bank, bankId, limit])
}

export function hasOpenFacts (store: Store, { seq: bank, bank_id: bankId }: Bank): boolean {
  return store.get(`SELECT 1 ${OPEN} LIMIT 1`, [bank, bank, bankId]) !== undefined
}
