import type { MemoryMigration } from './migrate.js'

/** A memory of an import that is not yet one of its bank has the state `staged`, and leaves it without a line in the history. */
export const staged: MemoryMigration = {
  version: 31,
  name: 'staged memories',
  sql: `
    DROP TRIGGER memory_state;
    CREATE TRIGGER memory_state AFTER UPDATE OF state ON memories
    WHEN NEW.document IS NOT NULL AND NEW.state <> OLD.state AND OLD.state <> 'staged' BEGIN
      INSERT INTO document_events (document, kind, created_at, fact_id)
      VALUES (NEW.document, CASE NEW.state WHEN 'valid' THEN 'fact_restored' ELSE 'fact_invalidated' END, NEW.updated_at, NEW.id);
    END
  `
}
