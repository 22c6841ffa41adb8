import type { MemoryMigration } from './migrate.js'

/** The document that a deletion is of, null for memories of the whole bank. */
export const clearedDocument: MemoryMigration = {
  version: 45,
  name: 'cleared document',
  sql: 'ALTER TABLE clearings ADD COLUMN document INTEGER REFERENCES documents ON DELETE CASCADE'
}
