import type { MemoryMigration } from './migrate.js'

/** What models were asked for a bank. Neither questions nor answers stand here: what is deleted from a bank is gone. */
export const modelCalls: MemoryMigration = {
  version: 22,
  name: 'model calls',
  sql: `
    CREATE TABLE model_calls (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL UNIQUE,
      bank INTEGER NOT NULL REFERENCES banks ON DELETE CASCADE,
      operation TEXT,
      scope TEXT NOT NULL,
      call_type TEXT NOT NULL,
      trace_id TEXT,
      model TEXT,
      status TEXT NOT NULL,
      error TEXT,
      started_at INTEGER NOT NULL,
      duration_ms INTEGER NOT NULL,
      input_tokens INTEGER,
      output_tokens INTEGER,
      facts TEXT NOT NULL DEFAULT '{}'
    );
    CREATE INDEX model_calls_bank ON model_calls (bank, seq DESC);
    CREATE TABLE token_use (
      bank INTEGER NOT NULL REFERENCES banks ON DELETE CASCADE,
      day TEXT NOT NULL,
      operation TEXT NOT NULL,
      tokens INTEGER NOT NULL,
      PRIMARY KEY (bank, day, operation)
    ) WITHOUT ROWID;
    CREATE TABLE consolidations (
      operation TEXT PRIMARY KEY REFERENCES operations (id) ON DELETE CASCADE,
      bank INTEGER NOT NULL REFERENCES banks ON DELETE CASCADE,
      before TEXT NOT NULL,
      undone_at INTEGER
    )
  `
}
