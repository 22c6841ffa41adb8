import type { MemoryMigration } from './migrate.js'

/** What happened to a document. Triggers note the changes of its memories, so that no writer can forget to. */
export const documentEvents: MemoryMigration = {
  version: 24,
  name: 'document events',
  sql: `
    CREATE TABLE document_events (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
      kind TEXT NOT NULL,
      created_at INTEGER NOT NULL,
      operation_id TEXT,
      fact_id TEXT,
      facts_added INTEGER NOT NULL DEFAULT 0,
      facts_removed INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX document_events_document ON document_events (document, seq);
    CREATE TRIGGER memory_edited AFTER UPDATE OF edited_at ON memories
    WHEN NEW.document IS NOT NULL AND NEW.edited_at IS NOT NULL AND NEW.edited_at IS NOT OLD.edited_at BEGIN
      INSERT INTO document_events (document, kind, created_at, fact_id) VALUES (NEW.document, 'fact_edited', NEW.edited_at, NEW.id);
    END;
    CREATE TRIGGER memory_state AFTER UPDATE OF state ON memories WHEN NEW.document IS NOT NULL AND NEW.state <> OLD.state BEGIN
      INSERT INTO document_events (document, kind, created_at, fact_id)
      VALUES (NEW.document, CASE NEW.state WHEN 'valid' THEN 'fact_restored' ELSE 'fact_invalidated' END, NEW.updated_at, NEW.id);
    END
  `
}
