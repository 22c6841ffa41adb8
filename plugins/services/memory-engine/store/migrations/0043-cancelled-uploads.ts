import type { MemoryMigration } from './migrate.js'

/** A cancelled import keeps nothing of the archive that was uploaded for it. */
export const cancelledUploads: MemoryMigration = {
  version: 43,
  name: 'uploads of cancelled operations',
  sql: `
    CREATE TRIGGER files_of_cancelled AFTER UPDATE OF status ON operations WHEN NEW.status = 'cancelled' BEGIN
      DELETE FROM operation_files WHERE operation = NEW.id;
    END;
    DELETE FROM operation_files WHERE operation IN (SELECT id FROM operations WHERE status = 'cancelled')
  `
}
