import type { MemoryMigration } from './migrate.js'

/** Directives, mental models and the tree of the knowledge base. Times are milliseconds since 1970, lists and maps JSON. */
export const models: MemoryMigration = {
  version: 21,
  name: 'models',
  sql: `
    CREATE TABLE directives (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL UNIQUE,
      bank INTEGER NOT NULL REFERENCES banks ON DELETE CASCADE,
      name TEXT NOT NULL,
      content TEXT NOT NULL,
      priority INTEGER NOT NULL DEFAULT 0,
      is_active INTEGER NOT NULL DEFAULT 1,
      tags TEXT NOT NULL DEFAULT '[]',
      created_at INTEGER NOT NULL,
      updated_at INTEGER NOT NULL
    );
    CREATE INDEX directives_bank ON directives (bank, priority DESC, seq);
    CREATE TABLE mental_models (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL,
      bank INTEGER NOT NULL REFERENCES banks ON DELETE CASCADE,
      name TEXT NOT NULL,
      source_query TEXT NOT NULL,
      content TEXT NOT NULL DEFAULT '',
      tags TEXT NOT NULL DEFAULT '[]',
      max_tokens INTEGER NOT NULL,
      settings TEXT NOT NULL DEFAULT '{}',
      reflect_response TEXT,
      last_refreshed_at INTEGER,
      last_memory_seen_at INTEGER,
      last_refresh_failed_at INTEGER,
      last_full_refreshed_at INTEGER,
      created_at INTEGER NOT NULL,
      UNIQUE (bank, id)
    );
    CREATE TABLE mental_model_history (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      model INTEGER NOT NULL REFERENCES mental_models ON DELETE CASCADE,
      changed_at INTEGER NOT NULL,
      change TEXT NOT NULL
    );
    CREATE INDEX mental_model_history_model ON mental_model_history (model, seq);
    CREATE TABLE knowledge_nodes (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL,
      bank INTEGER NOT NULL REFERENCES banks ON DELETE CASCADE,
      parent INTEGER REFERENCES knowledge_nodes ON DELETE CASCADE,
      kind TEXT NOT NULL,
      name TEXT NOT NULL,
      model INTEGER REFERENCES mental_models ON DELETE CASCADE,
      sort_order INTEGER NOT NULL DEFAULT 0,
      managed INTEGER NOT NULL DEFAULT 0,
      created_at INTEGER NOT NULL,
      updated_at INTEGER NOT NULL,
      UNIQUE (bank, id)
    );
    CREATE INDEX knowledge_nodes_model ON knowledge_nodes (model);
    CREATE INDEX knowledge_nodes_parent ON knowledge_nodes (parent)
  `
}
