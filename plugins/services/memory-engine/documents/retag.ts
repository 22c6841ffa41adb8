import type { Core } from '../core.js'
import type { DocumentRow } from '../store/document-table.js'
import { deleteDerived, setTags, type MemoryRow } from '../store/memory-table.js'
import { noteEvent } from './document-table.js'

/**
 * Other tags for a document and its memories. Observations that were made from them were seen by the readers of the old tags:
 * they go, and are made anew. Called in a transaction.
 */
export function retag ({ store, now }: Core, document: DocumentRow, tags: readonly string[]): void {
  const at = now()
  store.run('UPDATE documents SET tags = ?, updated_at = ? WHERE seq = ?', [JSON.stringify(tags), at, document.seq])
  for (const memory of store.all<MemoryRow>('SELECT * FROM memories WHERE document = ?', [document.seq])) {
    store.run('DELETE FROM memory_tags WHERE memory = ?', [memory.seq])
    setTags(store, memory.bank, memory.seq, tags)
    deleteDerived(store, memory.seq)
    store.run('UPDATE memories SET tags = ?, updated_at = ?, consolidated_at = NULL WHERE seq = ?', [JSON.stringify(tags), at, memory.seq])
  }
  noteEvent(store, document.seq, 'retag', at)
}
