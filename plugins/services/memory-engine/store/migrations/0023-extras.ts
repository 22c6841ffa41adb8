import type { MemoryMigration } from './migrate.js'

/** Webhooks with what was sent, the record of requests, other names of banks. Times are milliseconds since 1970. */
export const extras: MemoryMigration = {
  version: 23,
  name: 'extras',
  sql: `
    CREATE TABLE webhooks (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL UNIQUE,
      bank INTEGER NOT NULL REFERENCES banks ON DELETE CASCADE,
      url TEXT NOT NULL,
      secret TEXT,
      event_types TEXT NOT NULL,
      enabled INTEGER NOT NULL,
      http_config TEXT NOT NULL,
      created_at INTEGER NOT NULL,
      updated_at INTEGER NOT NULL
    );
    CREATE INDEX webhooks_bank ON webhooks (bank, seq);
    CREATE TABLE webhook_deliveries (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL UNIQUE,
      webhook INTEGER NOT NULL REFERENCES webhooks ON DELETE CASCADE,
      event_type TEXT NOT NULL,
      payload TEXT NOT NULL,
      status TEXT NOT NULL,
      attempts INTEGER NOT NULL DEFAULT 0,
      next_retry_at INTEGER,
      last_error TEXT,
      last_response_status INTEGER,
      last_response_body TEXT,
      last_attempt_at INTEGER,
      created_at INTEGER NOT NULL,
      updated_at INTEGER NOT NULL
    );
    CREATE INDEX webhook_deliveries_webhook ON webhook_deliveries (webhook, seq DESC);
    CREATE INDEX webhook_deliveries_open ON webhook_deliveries (next_retry_at) WHERE status = 'pending';
    CREATE TABLE audit_log (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL UNIQUE,
      bank_id TEXT NOT NULL,
      action TEXT NOT NULL,
      transport TEXT NOT NULL,
      started_at INTEGER NOT NULL,
      duration_ms INTEGER NOT NULL,
      facts TEXT NOT NULL DEFAULT '{}'
    );
    CREATE INDEX audit_log_bank ON audit_log (bank_id, started_at DESC);
    CREATE TRIGGER audit_log_of_bank AFTER DELETE ON banks BEGIN
      DELETE FROM audit_log WHERE bank_id = OLD.bank_id;
    END;
    CREATE TABLE bank_aliases (
      alias TEXT PRIMARY KEY,
      bank INTEGER NOT NULL REFERENCES banks ON DELETE CASCADE,
      is_primary INTEGER NOT NULL DEFAULT 0,
      created_at INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX bank_aliases_bank ON bank_aliases (bank)
  `
}
