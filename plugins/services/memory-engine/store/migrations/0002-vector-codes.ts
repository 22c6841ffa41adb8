import type { MemoryMigration } from './migrate.js'

/** The signs of each vector's numbers, one bit each: small enough to be held in memory and looked through for each recall. */
export const vectorCodes: MemoryMigration = {
  version: 2,
  name: 'vector-codes',
  sql: `
    CREATE TABLE vector_codes (
      bank INTEGER NOT NULL,
      model INTEGER NOT NULL,
      memory INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
      code BLOB NOT NULL,
      PRIMARY KEY (bank, model, memory)
    ) WITHOUT ROWID;
    CREATE INDEX vector_codes_memory ON vector_codes (memory);
  `
}
