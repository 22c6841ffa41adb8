import type { Table } from '../toml/toml-file.js'

/**
 * One step of svc.toml's format. `up` takes the file as parsed, at the version before, and returns it at `version`.
 * Pure; it sees unknown keys too and must keep them. Steps are never changed once released.
 */
export interface ConfigMigration {
  readonly version: number
  readonly up: (config: Table) => Table
}

/** In order, versions counting up from 2: version 1 is where every file without `[meta] schema_version` starts. */
export const configMigrations: readonly ConfigMigration[] = []
