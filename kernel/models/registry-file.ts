import { modelRowSchema, type Model } from '../contract/index.js'
import { checkShape, dotted, invalid, type Problem } from '../config/check/shape-check.js'
import { valueAt, withoutValue, withValue } from '../config/toml/table-path.js'
import { isTable, type Table } from '../config/toml/toml-file.js'

export interface RegistryRows {
  /** Sorted by id. */
  readonly models: ReadonlyMap<string, Model>
  /** Rows that are left out, and why. */
  readonly problems: readonly Problem[]
  /** Ids of those rows. */
  readonly unread: ReadonlySet<string>
}

/** Ids are free (slashes, dots, colons) but printable and in one word: they stand in URLs and log lines. */
export const MODEL_ID_PATTERN = /^[^\s\0-\x1f\x7f]{1,256}$/

/**
 * Reads registry.toml: `[models.<id>]`, or a list of `[[models]]` with `id`. An id that was left unquoted,
 * so that TOML split it at its dots, is put together again. A bad row is left out, the others stand. Pure.
 */
export function readRegistry (data: Table): RegistryRows {
  const rows = Array.isArray(data.models) ? listRows(data.models) : isTable(data.models) ? tableRows(data.models, []) : []
  const models = new Map<string, Model>()
  const problems: Problem[] = []
  const unread = new Set<string>()
  for (const { id, path, row } of rows) {
    const checked = checkRow(id, path, row)
    problems.push(...checked.problems)
    if (checked.value === null && id !== null) unread.add(id)
    if (checked.value === null || id === null) continue
    if (models.has(id)) problems.push({ path, message: 'is a second row with this id; it is ignored', unknown: false })
    else models.set(id, checked.value)
  }
  return { models: new Map([...models].sort(([a], [b]) => a < b ? -1 : 1)), problems, unread }
}

/** Whether the file is in the form that writers patch; a list is written anew as tables. */
export function isTableForm (data: Table): boolean {
  return data.models === undefined || isTable(data.models)
}

/**
 * The parsed file with rows written, or with null taken out; null when that changes nothing. A row stays where it stands:
 * at its own key, or in the nested tables of an id that was left unquoted. Throws as `requireRow`. Pure.
 */
export function withRows (data: Table, rows: ReadonlyMap<string, object | null>): Table | null {
  const models: Table = isTable(data.models) ? { ...data.models } : {}
  const nested = new Map(tableRows(models, []).flatMap(({ id, path }) => path.length > 2 ? [[id, path.slice(1)]] : []))
  let changed = false
  let next: Table = models
  for (const [id, row] of rows) {
    const path = nested.get(id) ?? [id]
    const known = path.length > 1 ? valueAt(next, path) !== undefined : Object.hasOwn(next, id)
    if (row === null && !known) continue
    changed = true
    const fresh = row === null ? null : requireRow(id, row)
    // most rows have a key of their own, and copying the table for each of thousands would take seconds
    if (path.length > 1) next = fresh === null ? withoutValue(next, path) : withValue(next, path, fresh)
    else if (fresh === null) delete next[id]
    else Object.defineProperty(next, id, { value: fresh, enumerable: true, writable: true, configurable: true })
  }
  return changed ? { ...data, models: next } : null
}

interface RawRow { readonly id: string | null, readonly path: readonly string[], readonly row: unknown }

function tableRows (tables: Table, prefix: readonly string[]): readonly RawRow[] {
  return Object.entries(tables).flatMap(([key, row]): readonly RawRow[] => {
    const parts = [...prefix, key]
    const split = isTable(row) && row.path === undefined && Object.keys(row).length > 0 && Object.values(row).every(isTable)
    return split ? tableRows(row, parts) : [{ id: parts.join('.'), path: ['models', ...parts], row }]
  })
}

function listRows (list: readonly unknown[]): readonly RawRow[] {
  return list.map((row, i) => {
    const id = isTable(row) && typeof row.id === 'string' ? row.id : null
    return { id, path: ['models', String(i)], row }
  })
}

function checkRow (
  id: string | null, path: readonly string[], row: unknown
): { readonly value: Model | null, readonly problems: readonly Problem[] } {
  if (id === null || !MODEL_ID_PATTERN.test(id)) {
    return { value: null, problems: [{ path, message: 'needs an id: text without spaces, at most 256 characters', unknown: false }] }
  }
  const { id: written = id, ...rest } = isTable(row) ? row : { id, row }
  if (written !== id) {
    return { value: null, problems: [{ path: [...path, 'id'], message: `must be ${id}, the key of its table`, unknown: false }] }
  }
  const checked = checkShape(modelRowSchema, rest, { audience: 'file', userPath: inner => [...path, ...inner] })
  return checked.value === null ? checked : { value: Object.freeze({ id, ...checked.value }), problems: [] }
}

/** A row to write, without nulls, which TOML has not. Throws `validation.invalid` or `validation.unknown_keys`. */
export function requireRow (id: string, row: object): Table {
  if (!MODEL_ID_PATTERN.test(id)) {
    throw invalid('model', [{ path: ['id'], message: 'must be text without spaces, at most 256 characters', unknown: false }])
  }
  const entries = Object.entries(row).filter(([key, value]) => value !== null && value !== undefined && key !== 'id')
  const given: Table = Object.fromEntries(entries)
  const checked = checkShape(modelRowSchema, given, { audience: 'client', written: true })
  if (checked.value === null) throw invalid(`model ${id}`, checked.problems)
  return given
}

/** The list form as tables. Rows without an id cannot be kept; no reader could name them either. */
export function asTables (data: Table): Table {
  const list = Array.isArray(data.models) ? data.models.filter(isTable) : []
  const rows = list.flatMap(({ id, ...row }) => typeof id === 'string' ? [[id, row] as const] : [])
  return { ...data, models: Object.fromEntries(rows) }
}

export function describeProblems (problems: readonly Problem[]): readonly string[] {
  return problems.map(problem => `${dotted(problem.path)} ${problem.message}`)
}
