import type { MemoryMigration } from './migrate.js'

/** An exported archive goes with the first memory of its bank that is deleted: what is deleted is in no copy here. */
export const transfer: MemoryMigration = {
  version: 25,
  name: 'transfer',
  sql: `
    CREATE TRIGGER exports_of_deleted AFTER DELETE ON memories WHEN EXISTS (SELECT 1 FROM operation_files WHERE key LIKE 'banks/%') BEGIN
      DELETE FROM operation_files WHERE key LIKE 'banks/%' AND operation IN
        (SELECT id FROM operations WHERE bank_id = (SELECT bank_id FROM banks WHERE seq = OLD.bank));
    END
  `
}
