import { join } from 'node:path'
import type { SvcConfig, svcConfigSchema } from '../../contract/index.js'
import { writeFileAtomic } from '../files/atomic-file.js'
import { migrateConfig } from '../migrations/migrate.js'
import type { ConfigMigration } from '../migrations/index.js'
import { configFiles } from '../parts/config-parts.js'
import { checkShape, invalid, type Problem } from '../check/shape-check.js'
import { isKnownPath } from '../check/schema-keys.js'
import type { WriterContext } from '../files/writer-context.js'
import { isTable, readToml, type Table } from '../toml/toml-file.js'
import { parseFailed, writeFailed } from '../files/write-errors.js'

export interface SvcWriterContext extends WriterContext {
  /** Of the whole file. */
  readonly schema: typeof svcConfigSchema
}

/**
 * svc.toml with a patch merged in, deep. A file of an older version is migrated on the way.
 * Throws `validation.invalid`, `validation.unknown_keys`, `config.parse_error`.
 */
export async function patchedSvc (
  context: SvcWriterContext, patch: Table, migrations: readonly ConfigMigration[] | undefined,
  check: (next: SvcConfig) => Promise<void> = () => Promise.resolve()
): Promise<{ readonly value: SvcConfig, readonly text: string }> {
  const { paths, log, schema } = context
  const file = configFiles.svc
  const read = await readToml(join(paths.etc, file), file)
  if (read.status === 'bad') throw parseFailed([read.diagnostic])
  const base = read.status === 'ok' ? read.data : {}
  const migrated = migrateConfig(base, migrations)
  if (migrated.status === 'refused') throw parseFailed([{ file, path: 'meta.schema_version', message: migrated.message }])
  const next = mergeTables(migrated.config, patch)
  const checked = checkShape(schema, next, { audience: 'client', written: true })
  const problems = [
    ...unknownDeletions(schema, patch, migrated.config), ...versionProblems(next, migrated.to), ...checked.problems
  ]
  if (checked.value === null || problems.length > 0) throw invalid('settings', problems)
  await check(checked.value)
  const { patchToml } = await import('../toml/toml-patch.js')
  const text = read.status === 'ok' ? read.text : ''
  const written = patchToml(text, next, reason => {
    log.warn({ file, reason }, 'the file was rewritten; its comments are lost')
  })
  return { value: checked.value, text: written }
}

/** Writes `patchedSvc`, for one who holds the lock and changes nothing else. Throws `config.write_failed` too. */
export async function patchSvcFile (
  context: SvcWriterContext, patch: Table, migrations: readonly ConfigMigration[] | undefined
): Promise<void> {
  const { paths, ops } = context
  const { text } = await patchedSvc(context, patch, migrations)
  const path = join(paths.etc, configFiles.svc)
  await writeFileAtomic(path, text, ops === undefined ? {} : { ops })
    .catch(error => { throw writeFailed(paths.etc, path, error) })
}

/** Tables merge, everything else replaces, null deletes. Neither argument is changed. */
export function mergeTables (base: Table, patch: Table): Table {
  const next = { ...base }
  for (const [key, value] of Object.entries(patch)) {
    if (value === undefined) continue
    const old = Object.hasOwn(base, key) ? base[key] : undefined
    const merged = isTable(value) ? mergeTables(isTable(old) ? old : {}, value) : value
    if (merged === null) delete next[key]
    else Object.defineProperty(next, key, { value: merged, enumerable: true, configurable: true, writable: true })
  }
  return next
}

/** The version says how the file is to be read; only migrations may move it. */
function versionProblems (next: Table, version: number): readonly Problem[] {
  const asked = isTable(next.meta) ? next.meta.schema_version ?? version : version
  if (asked === version || typeof asked !== 'number') return []
  return [{ path: ['meta', 'schema_version'], message: 'is managed by the gateway and cannot be set', unknown: false }]
}

/** Deleting leaves nothing behind for the schema to refuse, so names are checked here. */
function unknownDeletions (
  schema: SvcWriterContext['schema'], patch: Table, base: unknown, path: readonly string[] = []
): readonly Problem[] {
  return Object.entries(patch).flatMap(([key, value]) => {
    const here = [...path, key]
    const old = isTable(base) ? base[key] : undefined
    if (isTable(value)) return unknownDeletions(schema, value, old, here)
    if (value !== null || old !== undefined || isKnownPath(schema, here)) return []
    return [{ path: here, message: 'is not a known key', unknown: true }]
  })
}
