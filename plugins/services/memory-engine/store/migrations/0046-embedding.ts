import type { MemoryMigration } from './migrate.js'

/**
 * Memories that wait for a vector are found by their bank, and those that a model refused by themselves. Of a bank whose
 * embedding was cancelled: the model, the last memory that was there then, and those up to it that are embedded nevertheless.
 */
export const embedding: MemoryMigration = {
  version: 46,
  name: 'embedding',
  sql: `
    DROP INDEX memories_vector;
    CREATE INDEX memories_vector ON memories (vector_model, bank, embed_tries) WHERE state = 'valid' AND embed_tries < 5;
    CREATE INDEX memories_refused ON memories (embed_tries) WHERE embed_tries > 0;
    ALTER TABLE banks ADD COLUMN embed_cancelled TEXT;
    ALTER TABLE banks ADD COLUMN embed_cancelled_upto INTEGER;
    CREATE TABLE embed_anyway (memory INTEGER PRIMARY KEY REFERENCES memories ON DELETE CASCADE);
    CREATE INDEX operations_kinds ON operations (bank_id, type) WHERE status IN ('pending', 'processing')
  `
}
