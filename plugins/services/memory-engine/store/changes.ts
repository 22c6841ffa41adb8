import type { Store } from './store.js'

/*
 * What was read of memories is held from recall to recall, as long as none of them has changed. The database itself counts
 * changes, so that no write can forget to, and deletions that follow from others count too. What is new changes nothing that
 * was read, nor does a vector or a consolidation.
 */

/** Columns that recalls hold, and what their answers have of other tables. */
const watched = {
  memories: 'bank, document, chunk, text, context, fact_type, entities, tags, metadata, occurred_start, occurred_end, mentioned_at, state, updated_at',
  documents: 'document_id',
  chunks: 'chunk_index'
}

/** From here on changes are counted, by triggers that no other connection has. */
export function countChanges (store: Store): void {
  const count = 'BEGIN UPDATE memory_changes SET count = count + 1; END'
  const triggers = Object.entries(watched).map(([table, columns]) => `
    CREATE TEMP TRIGGER ${table}_changed AFTER UPDATE OF ${columns} ON main.${table} ${count};
    CREATE TEMP TRIGGER ${table}_deleted AFTER DELETE ON main.${table} ${count};`)
  store.exec(`CREATE TEMP TABLE memory_changes (count INTEGER NOT NULL); INSERT INTO memory_changes VALUES (0); ${triggers.join('')}`)
}
