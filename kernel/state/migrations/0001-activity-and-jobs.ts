import type { DatabaseMigration } from './migration.js'

/** Times are ISO 8601 UTC text, so that they sort and read as they are; JSON columns hold text. */
export const activityAndJobs: DatabaseMigration = {
  version: 1,
  name: 'activity and jobs',
  sql: `
    CREATE TABLE activity (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      ts TEXT NOT NULL,
      kind TEXT NOT NULL,
      category TEXT NOT NULL,
      action TEXT NOT NULL,
      target TEXT NOT NULL,
      actor TEXT NOT NULL,
      severity TEXT NOT NULL,
      outcome TEXT,
      message TEXT NOT NULL,
      before_json TEXT,
      after_json TEXT,
      error TEXT,
      duration_ms REAL,
      request_id TEXT
    );
    CREATE INDEX activity_ts ON activity (ts);
    CREATE INDEX activity_category ON activity (category, id);

    CREATE TABLE jobs (
      id TEXT PRIMARY KEY,
      kind TEXT NOT NULL,
      target TEXT NOT NULL,
      state TEXT NOT NULL,
      progress REAL,
      message TEXT NOT NULL DEFAULT '',
      error TEXT,
      data_json TEXT NOT NULL DEFAULT '{}',
      created_at TEXT NOT NULL,
      updated_at TEXT NOT NULL,
      finished_at TEXT
    ) WITHOUT ROWID;
    CREATE INDEX jobs_kind_target ON jobs (kind, target, created_at);
    CREATE INDEX jobs_unfinished ON jobs (state) WHERE finished_at IS NULL;
  `
}
