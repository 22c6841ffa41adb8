import type { MemoryMigration } from './migrate.js'

/**
 * What was before a consolidation goes when a memory is deleted that it tells of: its facts, what the observations were made from
 * that it changed or deleted, and these themselves. It stands beside the memories by their numbers, without a reference, as an
 * observation that a consolidation deletes comes back when that is undone. Consolidations are undone from the last one down:
 * where one goes that was not, those before it go too. Numbers are the order in which they were applied.
 *
 * A row in `replacing` says, within a transaction, that memories give way to what was made of them: nobody deletes them.
 *
 * What releases before kept may tell of observations that a client deleted: it goes where one is missing that was changed.
 */
export const consolidationMemories: MemoryMigration = {
  version: 47,
  name: 'consolidation memories',
  sql: `
    DROP TRIGGER consolidations_of_deleted;
    CREATE TABLE consolidations_in_order (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      operation TEXT NOT NULL UNIQUE REFERENCES operations (id) ON DELETE CASCADE,
      bank INTEGER NOT NULL REFERENCES banks ON DELETE CASCADE,
      before TEXT NOT NULL,
      undone_at INTEGER
    );
    INSERT INTO consolidations_in_order (operation, bank, before, undone_at)
      SELECT operation, bank, before, undone_at FROM consolidations ORDER BY rowid;
    DROP TABLE consolidations;
    ALTER TABLE consolidations_in_order RENAME TO consolidations;
    CREATE INDEX consolidations_bank ON consolidations (bank, seq);
    DELETE FROM consolidations WHERE undone_at IS NULL AND seq <= (
      SELECT max(c.seq) FROM consolidations c, json_each(c.before, '$.changed') k WHERE c.bank = consolidations.bank AND c.undone_at IS NULL
        AND NOT EXISTS (SELECT 1 FROM memories WHERE bank = c.bank AND id = json_extract(k.value, '$.row.id')));
    CREATE TABLE consolidation_memories (
      memory INTEGER NOT NULL,
      consolidation INTEGER NOT NULL REFERENCES consolidations ON DELETE CASCADE,
      is_fact INTEGER NOT NULL,
      PRIMARY KEY (memory, consolidation)
    ) WITHOUT ROWID;
    CREATE INDEX consolidation_memories_consolidation ON consolidation_memories (consolidation);
    INSERT OR IGNORE INTO consolidation_memories (memory, consolidation, is_fact)
      SELECT f.value, c.seq, 1 FROM consolidations c, json_each(c.before, '$.facts') f WHERE c.undone_at IS NULL;
    INSERT OR IGNORE INTO consolidation_memories (memory, consolidation, is_fact)
      SELECT s.value, c.seq, 1 FROM consolidations c, json_each(c.before, '$.changed') k, json_each(k.value, '$.sources') s
      WHERE c.undone_at IS NULL;
    INSERT OR IGNORE INTO consolidation_memories (memory, consolidation, is_fact)
      SELECT m.seq, c.seq, 0 FROM consolidations c, json_each(c.before, '$.changed') k
      JOIN memories m ON m.bank = c.bank AND m.id = json_extract(k.value, '$.row.id') WHERE c.undone_at IS NULL;
    CREATE TABLE replacing (kind TEXT NOT NULL);
    CREATE TRIGGER consolidations_of_deleted AFTER DELETE ON memories
    WHEN EXISTS (SELECT 1 FROM consolidation_memories WHERE memory = OLD.seq)
      AND NOT EXISTS (SELECT 1 FROM replacing WHERE kind = 'consolidation') BEGIN
      DELETE FROM consolidations WHERE seq IN (SELECT consolidation FROM consolidation_memories WHERE memory = OLD.seq);
    END;
    CREATE TRIGGER consolidations_beneath AFTER DELETE ON consolidations WHEN OLD.undone_at IS NULL BEGIN
      DELETE FROM consolidations WHERE bank = OLD.bank AND seq < OLD.seq AND undone_at IS NULL;
    END
  `
}
