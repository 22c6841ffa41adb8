import { isDeepStrictEqual } from 'node:util'
import { svcError, type Model, type NewModelRow } from 'svc-gateway/plugin'

/**
 * A row with a change merged in: `defaults` one level deep, every other key replaces, null removes a key. Says what
 * differs afterwards. Throws `validation.invalid` for another id. The registry checks the rest. Pure.
 */
export function merged (
  before: Model, patch: Readonly<Record<string, unknown>>
): { readonly row: NewModelRow, readonly changed: readonly string[] } {
  const { id, ...row } = before
  if (patch.id !== undefined && patch.id !== id) {
    throw svcError('validation.invalid', 'the id of a model cannot be changed; register it again', { param: 'id', details: { fields: [{ path: 'id', message: 'cannot be changed' }] } })
  }
  const { id: _, defaults, ...rest } = patch
  const next: Record<string, unknown> = withoutNulls({ ...row, ...rest })
  if (defaults === null) delete next.defaults
  else if (isTable(defaults)) next.defaults = withoutNulls({ ...row.defaults, ...defaults })
  else if (defaults !== undefined) next.defaults = defaults
  const keys = Object.keys(patch).filter(key => key !== 'id')
  return { row: rowOf(next as NewModelRow), changed: keys.filter(key => !isDeepStrictEqual(next[key], withoutNulls(row)[key])) }
}

/** Leaves out what is the default anyway, so that the file holds only what was set. */
export function rowOf (row: NewModelRow): NewModelRow {
  const isBlank = (value: unknown): boolean => value === null || value === '' || value === 0 || value === undefined ||
    (Array.isArray(value) && value.length === 0) || (isTable(value) && Object.keys(value).length === 0)
  const kept = Object.entries(row).filter(([key, value]) => key === 'path' || !(isBlank(value) || (key === 'license' && value === 'unknown')))
  return Object.fromEntries(kept.map(([key, value]) => [key, withoutDeepNulls(value)])) as unknown as NewModelRow
}

function withoutNulls (table: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(table).filter(([, value]) => value !== null))
}

/** TOML has no null: one in a table takes its key out, one in a list is refused with the row. */
function withoutDeepNulls (value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutDeepNulls)
  if (!isTable(value)) return value
  return Object.fromEntries(Object.entries(withoutNulls(value)).map(([key, inner]) => [key, withoutDeepNulls(inner)]))
}

function isTable (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
