import type { MemoryMigration } from './migrate.js'

/**
 * What waits for a vector is found bank by bank. A bank whose embedding was cancelled names the model that it was, and the last
 * memory that waited then, until all of those are marked.
 */
export const embedding: MemoryMigration = {
  version: 46,
  name: 'embedding',
  sql: `
    ALTER TABLE banks ADD COLUMN embed_cancelled TEXT;
    ALTER TABLE banks ADD COLUMN embed_cancelled_upto INTEGER;
    CREATE INDEX banks_embed_cancelled ON banks (seq) WHERE embed_cancelled IS NOT NULL;
    DROP INDEX memories_vector;
    CREATE INDEX memories_vector ON memories (vector_model, bank, state, embed_tries)
  `
}
