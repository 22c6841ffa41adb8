import type { MemoryMigration } from './migrate.js'

/**
 * An archive goes with the first memory of its bank that is deleted, but for memories that give way to what was made of them: of
 * the text nothing is deleted. While it is written it has those of the documents up to `read_upto`, and goes with these alone;
 * where that is null, it may have all of them.
 */
export const archives: MemoryMigration = {
  version: 49,
  name: 'archives',
  sql: `
    ALTER TABLE operation_files ADD COLUMN read_upto INTEGER;
    DROP TRIGGER exports_of_deleted;
    CREATE TRIGGER exports_of_deleted AFTER DELETE ON memories
    WHEN EXISTS (SELECT 1 FROM operation_files WHERE key LIKE 'banks/%') AND NOT EXISTS (SELECT 1 FROM replacing) BEGIN
      DELETE FROM operation_files WHERE key LIKE 'banks/%' AND (read_upto IS NULL OR read_upto >= OLD.document) AND operation IN
        (SELECT id FROM operations WHERE bank_id = (SELECT bank_id FROM banks WHERE seq = OLD.bank));
    END
  `
}
