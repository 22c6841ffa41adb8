import type { MemoryMigration } from './migrate.js'

/**
 * Times are milliseconds since 1970, lists and maps JSON. The full-text index is a table for each bank (store/text-index.ts), so
 * that words of one bank weigh nothing in another and a bank goes as a whole. An invalidated memory keeps its row and
 * vector and has no index row.
 */
export const memories: MemoryMigration = {
  version: 1,
  name: 'memories',
  sql: `
    CREATE TABLE banks (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      bank_id TEXT NOT NULL UNIQUE,
      name TEXT NOT NULL,
      overrides TEXT NOT NULL DEFAULT '{}',
      created_at INTEGER NOT NULL,
      updated_at INTEGER NOT NULL,
      last_write_at INTEGER,
      last_document_at INTEGER,
      last_consolidated_at INTEGER
    );
    CREATE TABLE documents (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      bank INTEGER NOT NULL REFERENCES banks ON DELETE CASCADE,
      document_id TEXT NOT NULL,
      original_text TEXT,
      content_hash TEXT,
      text_length INTEGER NOT NULL,
      tags TEXT NOT NULL DEFAULT '[]',
      metadata TEXT,
      retain_params TEXT,
      observation_scopes TEXT,
      created_at INTEGER NOT NULL,
      updated_at INTEGER NOT NULL,
      UNIQUE (bank, document_id)
    );
    CREATE INDEX documents_updated ON documents (bank, updated_at DESC, seq DESC);
    CREATE TABLE chunks (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
      chunk_index INTEGER NOT NULL,
      text TEXT NOT NULL,
      created_at INTEGER NOT NULL,
      UNIQUE (document, chunk_index)
    );
    CREATE TABLE memories (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL UNIQUE,
      bank INTEGER NOT NULL REFERENCES banks ON DELETE CASCADE,
      document INTEGER REFERENCES documents ON DELETE CASCADE,
      chunk INTEGER REFERENCES chunks ON DELETE SET NULL,
      text TEXT NOT NULL,
      text_hash BLOB NOT NULL,
      context TEXT,
      fact_type TEXT NOT NULL,
      entities TEXT NOT NULL DEFAULT '[]',
      tags TEXT NOT NULL DEFAULT '[]',
      metadata TEXT NOT NULL DEFAULT '{}',
      observation_scopes TEXT,
      occurred_start INTEGER,
      occurred_end INTEGER,
      mentioned_at INTEGER,
      proof_count INTEGER NOT NULL DEFAULT 1,
      state TEXT NOT NULL DEFAULT 'valid',
      invalidation_reason TEXT,
      invalidated_at INTEGER,
      edited_at INTEGER,
      consolidated_at INTEGER,
      consolidation_failed_at INTEGER,
      vector_model INTEGER,
      embed_tries INTEGER NOT NULL DEFAULT 0,
      created_at INTEGER NOT NULL,
      updated_at INTEGER NOT NULL
    );
    CREATE INDEX memories_bank ON memories (bank, state, mentioned_at DESC, seq DESC);
    CREATE INDEX memories_text ON memories (bank, text_hash);
    CREATE INDEX memories_document ON memories (document);
    CREATE INDEX memories_chunk ON memories (chunk);
    CREATE INDEX memories_vector ON memories (vector_model, embed_tries);
    CREATE TABLE memory_history (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      memory INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
      changed_at INTEGER NOT NULL,
      change TEXT NOT NULL
    );
    CREATE INDEX memory_history_memory ON memory_history (memory, seq);
    CREATE TABLE memory_tags (
      bank INTEGER NOT NULL REFERENCES banks ON DELETE CASCADE,
      tag TEXT NOT NULL,
      memory INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
      PRIMARY KEY (bank, tag, memory)
    ) WITHOUT ROWID;
    CREATE INDEX memory_tags_memory ON memory_tags (memory);
    CREATE TABLE entities (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL UNIQUE,
      bank INTEGER NOT NULL REFERENCES banks ON DELETE CASCADE,
      name TEXT NOT NULL,
      name_key TEXT NOT NULL,
      type TEXT,
      UNIQUE (bank, name_key)
    );
    CREATE TABLE memory_entities (
      entity INTEGER NOT NULL REFERENCES entities ON DELETE CASCADE,
      memory INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
      PRIMARY KEY (entity, memory)
    ) WITHOUT ROWID;
    CREATE INDEX memory_entities_memory ON memory_entities (memory);
    CREATE TABLE memory_sources (
      memory INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
      source INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
      PRIMARY KEY (memory, source)
    ) WITHOUT ROWID;
    CREATE INDEX memory_sources_source ON memory_sources (source);
    CREATE TABLE embed_models (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      name TEXT NOT NULL,
      dimensions INTEGER NOT NULL,
      UNIQUE (name, dimensions)
    );
    CREATE TABLE vectors (
      memory INTEGER PRIMARY KEY REFERENCES memories ON DELETE CASCADE,
      bank INTEGER NOT NULL,
      model INTEGER NOT NULL REFERENCES embed_models,
      vector BLOB NOT NULL
    );
    CREATE INDEX vectors_bank ON vectors (bank, model);
  `
}
