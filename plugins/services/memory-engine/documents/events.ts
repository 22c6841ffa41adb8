import type { Core } from '../core.js'
import { noteEvent } from './document-table.js'

/** Notes in each document's history that something was retained in it. */
export function startDocumentEvents (core: Core): void {
  core.hooks.retaining.push(({ documents, memories }) => {
    const added = new Map<number, number>()
    for (const { document } of memories.flatMap(seq => core.store.get<{ document: number }>('SELECT document FROM memories WHERE seq = ?', [seq]) ?? [])) {
      added.set(document, (added.get(document) ?? 0) + 1)
    }
    for (const document of documents) noteEvent(core.store, document, 'retain', core.now(), { facts_added: added.get(document) ?? 0 })
  })
}
