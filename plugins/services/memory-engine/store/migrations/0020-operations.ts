import type { MemoryMigration } from './migrate.js'

/** Background work. A bank of the wire may not be there yet (an import makes it), so its id stands here and no reference. */
export const operations: MemoryMigration = {
  version: 20,
  name: 'operations',
  sql: `
    CREATE TABLE operations (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL UNIQUE,
      bank_id TEXT NOT NULL,
      type TEXT NOT NULL,
      status TEXT NOT NULL,
      parent_id TEXT,
      sub_batch_index INTEGER,
      items_count INTEGER NOT NULL DEFAULT 0,
      document_id TEXT,
      filename TEXT,
      mental_model_id TEXT,
      payload TEXT,
      result TEXT NOT NULL DEFAULT '{}',
      details TEXT,
      error TEXT,
      retry_count INTEGER NOT NULL DEFAULT 0,
      next_retry_at INTEGER,
      progress TEXT,
      created_at INTEGER NOT NULL,
      updated_at INTEGER NOT NULL,
      completed_at INTEGER
    );
    CREATE INDEX operations_bank ON operations (bank_id, seq DESC);
    CREATE INDEX operations_parent ON operations (parent_id) WHERE parent_id IS NOT NULL;
    CREATE INDEX operations_open ON operations (status, seq) WHERE status IN ('pending', 'processing');
    CREATE TABLE operation_files (
      key TEXT PRIMARY KEY,
      operation TEXT NOT NULL REFERENCES operations (id) ON DELETE CASCADE,
      filename TEXT NOT NULL,
      bytes BLOB NOT NULL
    );
    CREATE INDEX operation_files_operation ON operation_files (operation);
    CREATE TRIGGER operations_of_bank AFTER DELETE ON banks BEGIN
      DELETE FROM operations WHERE bank_id = OLD.bank_id;
    END
  `
}
