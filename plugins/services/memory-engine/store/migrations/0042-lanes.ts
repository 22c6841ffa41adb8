import type { MemoryMigration } from './migrate.js'

/** The queue finds the first of each bank and type without the payloads of those that wait behind it. */
export const lanes: MemoryMigration = {
  version: 42,
  name: 'lanes of operations',
  sql: `
    CREATE INDEX operations_lanes ON operations (bank_id, type, seq, next_retry_at, parent_id, sub_batch_index) WHERE status = 'pending';
    CREATE INDEX operations_siblings ON operations (parent_id, sub_batch_index) WHERE status = 'pending'
  `
}
