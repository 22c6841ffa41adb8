import type { z } from 'zod'
import { checkShape, type Problem } from '../check/shape-check.js'
import { isTable } from '../toml/toml-file.js'

export interface Rows<T> {
  readonly rows: readonly T[]
  readonly problems: readonly Problem[]
}

export interface RowList<S extends z.ZodType> {
  /** The key of the list in the file: `upstream` for `[[upstream]]`. */
  readonly key: string
  readonly schema: S
  /** What tells two rows apart; undefined when the row is too broken to say. */
  readonly idOf: (row: unknown) => string | undefined
}

/**
 * Checks a file that is one list of tables. A broken row is reported and replaced by the last good row of the same id,
 * or left out; the others stand. Of two rows with one id the first stands. Pure.
 */
export function readRows<S extends z.ZodType> (
  list: RowList<S>, data: unknown, previous: readonly z.output<S>[]
): Rows<z.output<S>> {
  const { key, schema, idOf } = list
  const problems: Problem[] = unknownTopKeys(data, key)
  const raw = isTable(data) ? data[key] ?? [] : []
  if (!Array.isArray(raw)) {
    return { rows: previous, problems: [...problems, { path: [key], message: `must be a list of tables, written [[${key}]]`, unknown: false }] }
  }
  const rows: z.output<S>[] = []
  const seen = new Set<string>()
  raw.forEach((item: unknown, i) => {
    const id = idOf(item)
    if (id !== undefined && seen.has(id)) {
      problems.push({ path: [key, String(i)], message: `is a second ${key} "${id}"; names must be unique, so this one is ignored`, unknown: false })
      return
    }
    const checked = checkShape(schema, item, { audience: 'file', userPath: path => [key, String(i), ...path] })
    problems.push(...checked.problems)
    const row = checked.value ?? previous.find(old => id !== undefined && idOf(old) === id)
    if (row === undefined || row === null) return
    rows.push(row)
    if (id !== undefined) seen.add(id)
  })
  return { rows, problems }
}

export function unknownTopKeys (data: unknown, ...known: readonly string[]): Problem[] {
  if (!isTable(data)) return [{ path: [], message: 'must be a table', unknown: false }]
  return Object.keys(data).filter(key => !known.includes(key))
    .map(key => ({ path: [key], message: `is not a known key; known here: ${known.join(', ')}`, unknown: true }))
}
