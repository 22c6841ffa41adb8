import type { MemoryMigration } from './migrate.js'

/** Memories that are hidden are exported in pages. */
export const hidden: MemoryMigration = {
  version: 41,
  name: 'hidden memories',
  sql: `CREATE INDEX memories_hidden ON memories (bank) WHERE state = 'invalidated'`
}
