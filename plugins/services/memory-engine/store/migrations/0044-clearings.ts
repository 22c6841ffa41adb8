import type { MemoryMigration } from './migrate.js'

/** Deletions of many memories that have begun, and which those are: a killed process goes on with them when it is back. */
export const clearings: MemoryMigration = {
  version: 44,
  name: 'clearings',
  sql: `
    CREATE TABLE clearings (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      bank INTEGER NOT NULL REFERENCES banks ON DELETE CASCADE,
      fact_type TEXT,
      reopens INTEGER NOT NULL,
      last_memory INTEGER NOT NULL,
      last_document INTEGER NOT NULL
    )
  `
}
