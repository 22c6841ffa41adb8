/** In their order; a released one never changes. Times are epoch seconds. */
export const migrations: readonly string[] = [`
CREATE TABLE boards (
  slug TEXT PRIMARY KEY, name TEXT NOT NULL, icon TEXT, description TEXT NOT NULL DEFAULT '', created REAL NOT NULL
) STRICT;
CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE tasks (
  id TEXT PRIMARY KEY,
  board TEXT NOT NULL REFERENCES boards (slug) ON DELETE CASCADE,
  title TEXT NOT NULL,
  status TEXT NOT NULL,
  assignee TEXT,
  profile TEXT,
  tenant TEXT,
  priority INTEGER NOT NULL DEFAULT 0,
  workspace TEXT,
  created_by TEXT NOT NULL,
  created REAL NOT NULL,
  updated_at REAL NOT NULL,
  body TEXT NOT NULL DEFAULT '',
  block_reason TEXT,
  schedule REAL,
  summary TEXT,
  revision INTEGER NOT NULL DEFAULT 1,
  failures INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX tasks_by_lane ON tasks (board, status);
CREATE INDEX tasks_by_status ON tasks (status, priority DESC, created);
CREATE TABLE links (
  parent TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
  child TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
  PRIMARY KEY (parent, child)
) STRICT, WITHOUT ROWID;
CREATE INDEX links_by_child ON links (child);
CREATE TABLE comments (
  id INTEGER PRIMARY KEY,
  task TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
  author TEXT NOT NULL,
  at REAL NOT NULL,
  body TEXT NOT NULL
) STRICT;
CREATE INDEX comments_by_task ON comments (task);
-- not tied to the tasks: a reader learns of one that was deleted
CREATE TABLE events (
  id INTEGER PRIMARY KEY AUTOINCREMENT, board TEXT NOT NULL, task TEXT NOT NULL, kind TEXT NOT NULL, at REAL NOT NULL, json TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_board ON events (board, id);
CREATE INDEX events_by_task ON events (task, id);
CREATE TABLE runs (
  id TEXT PRIMARY KEY,
  task TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
  agent TEXT NOT NULL,
  state TEXT NOT NULL,
  started REAL NOT NULL,
  ended REAL,
  message TEXT,
  log TEXT NOT NULL DEFAULT '',
  -- what the runner needs to find what it started
  handle TEXT
) STRICT;
CREATE INDEX runs_by_task ON runs (task, started);
CREATE INDEX runs_by_state ON runs (state);
`, `
-- how often it was split off from another task
ALTER TABLE tasks ADD COLUMN depth INTEGER NOT NULL DEFAULT 0;
-- the last plan of a task that a model made, with what takes it back
CREATE TABLE plans (
  task TEXT PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  -- title, body and status, as JSON
  before TEXT NOT NULL,
  after TEXT NOT NULL,
  -- revisions of the parts by their ids
  parts TEXT NOT NULL
) STRICT, WITHOUT ROWID;
`, `
-- tasks that are decomposed by themselves: each once, so a row stays when that is over
CREATE TABLE auto_plans (
  task TEXT PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE,
  -- waiting, over
  state TEXT NOT NULL,
  -- who put it into triage
  actor TEXT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  next_at REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX auto_plans_by_state ON auto_plans (state, next_at);
-- of the last hour; not tied to tasks, which can be deleted
CREATE TABLE auto_asks (at REAL NOT NULL) STRICT;
`]
