import type { Core } from '../core.js'
import { addToRetain, noteEvent } from './document-table.js'

/** Notes in each document's history that something was retained in it; what goes on belongs to the line that is there. */
export function startDocumentEvents (core: Core): void {
  core.hooks.retaining.push(({ kinds, memories }) => {
    const added = new Map<number, number>()
    for (const { document } of memories.flatMap(seq => core.store.get<{ document: number }>('SELECT document FROM memories WHERE seq = ?', [seq]) ?? [])) {
      added.set(document, (added.get(document) ?? 0) + 1)
    }
    for (const [document, kind] of kinds) {
      const facts = added.get(document) ?? 0
      if (kind === null) addToRetain(core.store, document, facts)
      else noteEvent(core.store, document, kind, core.now(), { facts_added: facts })
    }
  })
}
