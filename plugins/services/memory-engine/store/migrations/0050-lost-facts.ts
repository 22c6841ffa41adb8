import type { MemoryMigration } from './migrate.js'

/**
 * Whether a memory of a chunk was deleted, other than those replaced by what was made of them: the memories that are left may not
 * say all of the chunk.
 */
export const lostFacts: MemoryMigration = {
  version: 50,
  name: 'lost facts',
  sql: `
    ALTER TABLE chunks ADD COLUMN lost_facts INTEGER NOT NULL DEFAULT 0;
    CREATE TRIGGER facts_of_chunk AFTER DELETE ON memories
    WHEN OLD.chunk IS NOT NULL AND NOT EXISTS (SELECT 1 FROM replacing) BEGIN
      UPDATE chunks SET lost_facts = 1 WHERE seq = OLD.chunk AND lost_facts = 0;
    END
  `
}
