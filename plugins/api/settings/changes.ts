import { isDeepStrictEqual } from 'node:util'

export type Table = Readonly<Record<string, unknown>>

export function isTable (value: unknown): value is Table {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Dotted paths of all values that differ, sorted. Lists count as one value. Pure. */
export function changedKeys (before: Table, after: Table): string[] {
  return differing(before, after, []).map(path => path.join('.')).sort()
}

/** The named values alone, in their tables. Pure. */
export function pick (table: Table, keys: readonly string[]): Table {
  const paths = keys.map(key => key.split('.'))
  return only(table, paths)
}

function differing (before: Table, after: Table, path: readonly string[]): readonly (readonly string[])[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap(key => {
    const [old, next] = [before[key], after[key]]
    const at = [...path, key]
    if (isTable(old) || isTable(next)) return differing(isTable(old) ? old : {}, isTable(next) ? next : {}, at)
    return isDeepStrictEqual(old, next) ? [] : [at]
  })
}

function only (table: Table, paths: readonly (readonly string[])[]): Table {
  const heads = [...new Set(paths.map(([head]) => head!))].filter(head => Object.hasOwn(table, head))
  return Object.fromEntries(heads.map(head => {
    const value = table[head]
    const below = paths.filter(path => path[0] === head).map(path => path.slice(1))
    return [head, isTable(value) && below.every(path => path.length > 0) ? only(value, below) : value]
  }))
}
