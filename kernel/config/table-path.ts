import { isTable, type Table } from './toml-file.js'

export function valueAt (table: Table, path: readonly string[]): unknown {
  return path.reduce<unknown>((at, key) => isTable(at) ? at[key] : undefined, table)
}

/** A copy with the value at the path; missing tables are made. */
export function withValue (table: Table, path: readonly string[], value: unknown): Table {
  const [key, ...rest] = path
  if (key === undefined) return table
  const inner = table[key]
  return { ...table, [key]: rest.length === 0 ? value : withValue(isTable(inner) ? inner : {}, rest, value) }
}

/** A copy without the value at the path. Tables that become empty on the way go as well. */
export function withoutValue (table: Table, path: readonly string[]): Table {
  const [key, ...rest] = path
  if (key === undefined || !Object.hasOwn(table, key)) return table
  const { [key]: inner, ...others } = table
  if (rest.length === 0 || !isTable(inner)) return others
  const left = withoutValue(inner, rest)
  return Object.keys(left).length === 0 ? others : { ...table, [key]: left }
}
