import type { MemoryRow } from '../store/memory-table.js'
import type { Store } from '../store/store.js'

export type Said = Pick<MemoryRow, 'seq' | 'id' | 'tags' | 'metadata' | 'context'>
export const SAID = 'm.seq, m.id, m.tags, m.metadata, m.context'
export const VALID = `m.state = 'valid' AND m.fact_type <> 'observation'`

/** Of a chunk `c`: a memory of it was edited, hidden or deleted since, or none is there. */
const CHANGED = `(c.lost_facts = 1 OR NOT EXISTS (SELECT 1 FROM memories m WHERE m.chunk = c.seq AND ${VALID})
  OR EXISTS (SELECT 1 FROM memories m WHERE m.chunk = c.seq AND (m.edited_at IS NOT NULL OR NOT (${VALID}))))`

/**
 * What was made of the last chunks of a document; of all by default. None where a part of it is gone or says something else by
 * now: the text is not known from it any more.
 */
export function madeOf (store: Store, document: number, last = -1): readonly Said[] {
  const chunks = 'SELECT * FROM chunks WHERE document = ?1 ORDER BY chunk_index DESC LIMIT ?2'
  if (store.get(`SELECT 1 FROM (${chunks}) c WHERE ${CHANGED} LIMIT 1`, [document, last]) !== undefined) return []
  return store.all<Said>(`SELECT ${SAID} FROM (${chunks}) c JOIN memories m ON m.chunk = c.seq`, [document, last])
}
