import type { DatabaseMigration } from './migration.js'

/** The index on pending rows makes a second entry for the same thing impossible. */
export const approvals: DatabaseMigration = {
  version: 4,
  name: 'approvals',
  sql: `
    CREATE TABLE approvals (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL UNIQUE,
      server TEXT NOT NULL,
      tool TEXT NOT NULL,
      dedup_key TEXT NOT NULL,
      args_json TEXT NOT NULL,
      secrets_json TEXT NOT NULL,
      primary_argument TEXT,
      actor TEXT NOT NULL,
      agent TEXT,
      private INTEGER NOT NULL,
      state TEXT NOT NULL,
      hit_count INTEGER NOT NULL,
      enqueued_at TEXT NOT NULL,
      decided_at TEXT,
      decided_by TEXT,
      reason TEXT,
      finished_at TEXT,
      result_json TEXT,
      error_json TEXT
    );
    CREATE UNIQUE INDEX approvals_pending ON approvals (server, tool, dedup_key) WHERE state = 'pending';
    CREATE INDEX approvals_state ON approvals (state, seq);
  `
}
