import type { MemoryMigration } from './migrate.js'

/** What was before a consolidation tells of its facts: it goes with the first of them that is deleted. */
export const consolidations: MemoryMigration = {
  version: 26,
  name: 'consolidations',
  sql: `
    CREATE INDEX consolidations_bank ON consolidations (bank);
    CREATE TRIGGER consolidations_of_deleted AFTER DELETE ON memories WHEN OLD.fact_type <> 'observation'
      AND EXISTS (SELECT 1 FROM consolidations WHERE bank = OLD.bank) BEGIN
      DELETE FROM consolidations WHERE bank = OLD.bank;
    END
  `
}
