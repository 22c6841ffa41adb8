import type { DatabaseMigration } from './migration.js'

export const pluginState: DatabaseMigration = {
  version: 3,
  name: 'what plugins keep',
  sql: `
    CREATE TABLE plugin_state (
      plugin TEXT NOT NULL,
      key TEXT NOT NULL,
      value TEXT NOT NULL,
      PRIMARY KEY (plugin, key)
    ) WITHOUT ROWID;
  `
}
