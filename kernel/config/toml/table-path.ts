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

/** A copy that can be changed without the original noticing. Lists are shared. */
export function tableCopy (table: Table): Table {
  const copy: Table = {}
  for (const [key, value] of Object.entries(table)) define(copy, key, isTable(value) ? tableCopy(value) : value)
  return copy
}

/** Puts the value at the path, in place; missing tables are made. */
export function setValue (table: Table, path: readonly string[], value: unknown): void {
  let at = table
  for (const key of path.slice(0, -1)) {
    if (!Object.hasOwn(at, key) || !isTable(at[key])) define(at, key, {})
    at = at[key] as Table
  }
  if (path.length > 0) define(at, path.at(-1)!, value)
}

/** Takes the value at the path out, in place. A table that becomes empty stays. */
export function deleteValue (table: Table, path: readonly string[]): void {
  const parent = valueAt(table, path.slice(0, -1))
  if (path.length > 0 && isTable(parent)) delete parent[path.at(-1)!]
}

/** Takes out the table at the path if it is empty, in place, and then those around it. */
export function dropEmpty (table: Table, path: readonly string[]): void {
  for (let length = path.length; length > 0; length--) {
    const at = path.slice(0, length)
    const inner = valueAt(table, at)
    if (!isTable(inner) || Object.keys(inner).length > 0) return
    deleteValue(table, at)
  }
}

/** Assigned, `__proto__` would be no key. */
function define (table: Table, key: string, value: unknown): void {
  Object.defineProperty(table, key, { value, enumerable: true, configurable: true, writable: true })
}
