import type { DatabaseMigration } from './migration.js'

export const unwrittenArguments: DatabaseMigration = {
  version: 5,
  name: 'arguments of approvals that are hidden once they are decided',
  sql: `
    ALTER TABLE approvals ADD COLUMN unwritten_json TEXT NOT NULL DEFAULT '[]';
  `
}
