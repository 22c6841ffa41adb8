import type { MemoryMigration } from './migrate.js'

/** A text that is retained again is found by its hash. */
export const documentHash: MemoryMigration = {
  version: 27,
  name: 'document hash',
  sql: 'CREATE INDEX documents_hash ON documents (bank, content_hash)'
}
