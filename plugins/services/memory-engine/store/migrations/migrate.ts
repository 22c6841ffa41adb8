import { createHash } from 'node:crypto'
import type { Store } from '../store.js'

/** One step of the memory database's form. Never changed once released: its checksum is kept in the file. */
export interface MemoryMigration {
  /** Steps run in this order; numbers may be left out. */
  readonly version: number
  readonly name: string
  readonly sql: string
}

/** Runs what is missing, each step in a transaction of its own with its entry in the table of versions. */
export function migrate (store: Store, migrations: readonly MemoryMigration[]): void {
  store.exec('CREATE TABLE IF NOT EXISTS schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL)')
  const applied = new Map(store.all<{ version: number, checksum: string }>('SELECT version, checksum FROM schema_migrations')
    .map(({ version, checksum }) => [version, checksum]))
  const unknown = [...applied.keys()].find(version => !migrations.some(step => step.version === version))
  if (unknown !== undefined) {
    throw new Error(`the memory database has step ${unknown}, which this release does not know; update the gateway, or restore an older database`)
  }
  for (const { version, name, sql } of [...migrations].sort((a, b) => a.version - b.version)) {
    const checksum = createHash('sha256').update(sql.replace(/\s+/g, ' ').trim()).digest('hex')
    const known = applied.get(version)
    if (known === checksum) continue
    if (known !== undefined) {
      throw new Error(`step ${version} (${name}) of the memory database is not the one of this release; restore the database or the release that wrote it`)
    }
    store.transaction(() => {
      store.exec(sql)
      store.run('INSERT INTO schema_migrations (version, name, checksum) VALUES (?, ?, ?)', [version, name, checksum])
    })
  }
}
