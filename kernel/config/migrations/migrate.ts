import { isTable, type Table } from '../toml/toml-file.js'
import { configMigrations, type ConfigMigration } from './index.js'

export type Migrated =
  | { readonly status: 'ok', readonly config: Table, readonly from: number, readonly to: number }
  | { readonly status: 'refused', readonly message: string }

export function currentVersion (migrations: readonly ConfigMigration[] = configMigrations): number {
  return migrations.at(-1)?.version ?? 1
}

/**
 * Brings a parsed svc.toml to the present version. A file of a newer release is refused: guessing
 * at it could lose settings. Pure; a version that is no whole number is left for the schema to report.
 */
export function migrateConfig (config: Table, migrations: readonly ConfigMigration[] = configMigrations): Migrated {
  const to = currentVersion(migrations)
  const from = versionOf(config)
  if (from === null) return { status: 'ok', config, from: to, to }
  if (from > to) {
    return {
      status: 'refused',
      message: `is ${from}, and this release knows versions up to ${to}; update the gateway or restore the older file`
    }
  }
  const steps = migrations.filter(migration => migration.version > from)
  if (steps.length === 0) return { status: 'ok', config, from, to }
  const migrated = steps.reduce((at, migration) => migration.up(at), config)
  const meta = isTable(migrated.meta) ? migrated.meta : {}
  return { status: 'ok', config: { ...migrated, meta: { ...meta, schema_version: to } }, from, to }
}

/** 1 when the file says nothing; null when it says nonsense. */
function versionOf (config: Table): number | null {
  if (config.meta !== undefined && !isTable(config.meta)) return null
  const version = config.meta?.schema_version ?? 1
  return typeof version === 'number' && Number.isInteger(version) && version >= 1 ? version : null
}
