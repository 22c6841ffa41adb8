import type { z } from 'zod'
import {
  externalProviderSchema, NAME_PATTERN, profileSchema, upstreamSchema,
  type ExternalProvider, type NamedProfile, type Upstream
} from '../../contract/index.js'
import { checkShape, type Problem } from '../check/shape-check.js'
import { isTable } from '../toml/toml-file.js'
import { readRows, unknownTopKeys, type Rows } from './rows.js'

/** upstreams.toml: `[[upstream]]`, names unique. */
export const upstreamRows = { key: 'upstream', schema: upstreamSchema, idOf: (row: unknown) => field(row, 'name') } as const

/** providers.toml: `[[provider]]`; two entries of one catalogue row need names of their own. */
export const providerRows = {
  key: 'provider', schema: externalProviderSchema, idOf: (row: unknown) => field(row, 'name') ?? field(row, 'catalog_id')
} as const

export function readUpstreams (data: unknown, previous: readonly Upstream[]): Rows<Upstream> {
  return readRows(upstreamRows, data, previous)
}

export function readProviders (data: unknown, previous: readonly ExternalProvider[]): Rows<ExternalProvider> {
  return readRows(providerRows, data, previous)
}

/** profiles.toml: `[profile.<name>]`. */
export function readProfiles (
  data: unknown, previous: readonly NamedProfile[], seeds: ReadonlySet<string>
): Rows<NamedProfile> {
  const { rows, problems } = readNamed({ key: 'profile', schema: profileSchema, seeds }, data, new Map(previous.map(row => [row.name, row])))
  return { rows: rows.map(([name, row]) => ({ ...row, name, seed: false })), problems }
}

export interface NamedTables<S extends z.ZodType> {
  readonly key: string
  readonly schema: S
  readonly seeds: ReadonlySet<string>
}

/**
 * A file of tables by name. A seed's name always means the seed, so a table with one is
 * reported and not used.
 */
export function readNamed<S extends z.ZodType> (
  { key, schema, seeds }: NamedTables<S>, data: unknown, previous: ReadonlyMap<string, z.output<S>>
): Rows<readonly [string, z.output<S>]> {
  const problems: Problem[] = unknownTopKeys(data, key)
  const tables = isTable(data) ? data[key] ?? {} : {}
  if (!isTable(tables)) {
    const message = `must hold tables, written [${key}.<name>]`
    return { rows: [...previous], problems: [...problems, { path: [key], message, unknown: false }] }
  }
  const rows: Array<readonly [string, z.output<S>]> = []
  for (const [name, table] of Object.entries(tables)) {
    const refused = nameProblem(name, key, seeds)
    if (refused !== null) {
      problems.push({ path: [key, name], message: refused, unknown: false })
      continue
    }
    const checked = checkShape(schema, table, { audience: 'file', userPath: path => [key, name, ...path] })
    problems.push(...checked.problems)
    const row = checked.value ?? previous.get(name)
    if (row !== undefined) rows.push([name, row])
  }
  return { rows, problems }
}

function nameProblem (name: string, key: string, seeds: ReadonlySet<string>): string | null {
  if (seeds.has(name)) return `is a built-in ${key} and cannot be changed; this table is not used, give it another name`
  return NAME_PATTERN.test(name) ? null
    : 'has a name that is not allowed: lowercase letters, digits, - or _, at most 32, starting with a letter or digit'
}

function field (row: unknown, key: string): string | undefined {
  const value = isTable(row) ? row[key] : undefined
  return typeof value === 'string' && value !== '' ? value : undefined
}
