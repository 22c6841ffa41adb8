import { createHash } from 'node:crypto'
import { svcError } from '../../contract/index.js'
import { inTransaction, type Connection } from '../transaction.js'
import type { DatabaseMigration } from './index.js'

/**
 * Runs what is missing, each step in a transaction of its own with its entry in the version table: a crash leaves the
 * database between two steps, never inside one. Throws `state.database_too_new` or `state.database_failed`.
 */
export function migrate (connection: Connection, migrations: readonly DatabaseMigration[]): void {
  connection.exec(`CREATE TABLE IF NOT EXISTS schema_migrations (
    version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at TEXT NOT NULL)`)
  refuseNewer(appliedSteps(connection), migrations)
  for (const migration of migrations) {
    inTransaction(connection, () => {
      // read inside of the transaction: another process may have run the step while this one waited
      const applied = appliedSteps(connection)
      refuseNewer(applied, migrations)
      const checksum = checksumOf(migration)
      const known = applied.get(migration.version)
      if (known === undefined) {
        connection.exec(migration.sql)
        connection.prepare('INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES (?, ?, ?, ?)')
          .run(migration.version, migration.name, checksum, new Date().toISOString())
      } else if (known !== checksum) {
        throw svcError('state.database_failed',
          `step ${migration.version} (${migration.name}) of the state database differs from the one in this release; restore the database or the release that wrote it`,
          { details: { version: migration.version } })
      }
    })
  }
}

function appliedSteps (connection: Connection): ReadonlyMap<number, string> {
  const rows = connection.prepare('SELECT version, checksum FROM schema_migrations').all() as { version: number, checksum: string }[]
  return new Map(rows.map(row => [row.version, row.checksum]))
}

function refuseNewer (applied: ReadonlyMap<number, string>, migrations: readonly DatabaseMigration[]): void {
  const known = Math.max(0, ...migrations.map(migration => migration.version))
  const found = Math.max(0, ...applied.keys())
  if (found <= known) return
  throw svcError('state.database_too_new',
    `the state database has version ${found} and this release knows versions up to ${known}; update the gateway, or restore an older database`,
    { details: { found, known } })
}

function checksumOf (migration: DatabaseMigration): string {
  return createHash('sha256').update(migration.sql.replace(/\s+/g, ' ').trim()).digest('hex')
}
