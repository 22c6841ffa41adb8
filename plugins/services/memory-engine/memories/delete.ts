import type { Core } from '../core.js'
import { dropChunkOf } from '../store/document-table.js'
import { deleteMemories, type MemoryRow } from '../store/memory-table.js'

/** One memory, with the part of its document that it was. */
export function deleteForGood (core: Core, row: MemoryRow): void {
  core.store.transaction(() => {
    deleteMemories(core.store, [row])
    dropChunkOf(core.store, row, core.now())
  })
}
