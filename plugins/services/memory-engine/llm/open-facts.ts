import type { BankRow } from '../store/bank-table.js'
import type { MemoryRow } from '../store/memory-table.js'
import type { Store } from '../store/store.js'

/**
 * Facts that no consolidation has seen, oldest first. What is to give way to facts waits for them: with it would go what was made
 * of it, and of others.
 */
export function openFacts (store: Store, bank: Pick<BankRow, 'seq' | 'bank_id'>, limit: number): readonly MemoryRow[] {
  return store.all<MemoryRow>(`SELECT * FROM memories WHERE bank = ? AND state = 'valid' AND fact_type <> 'observation'
    AND consolidated_at IS NULL AND consolidation_failed_at IS NULL AND coalesce(document, 0) NOT IN (
      SELECT d.seq FROM operations o JOIN documents d ON d.bank = ? AND d.document_id = o.document_id
      WHERE o.bank_id = ? AND o.type = 'graph_maintenance' AND o.status IN ('pending', 'processing'))
    ORDER BY seq LIMIT ?`, [bank.seq, bank.seq, bank.bank_id, limit])
}
