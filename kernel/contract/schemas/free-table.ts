import { z } from 'zod'
import { tomlValueSchema } from './toml-value.js'

/** Values that a table of free keys may hold, those of its tables and lists among them. */
export const MAX_FREE_VALUES = 256

/** Entries of a list that people write: what reads a file, or changes it, takes its time for each. */
export const MAX_LIST_ENTRIES = 256

/** A table whose keys only its reader knows. */
export const freeTableSchema = z.record(z.string(), tomlValueSchema).refine(table => valuesIn(table) <= MAX_FREE_VALUES, {
  error: `must hold at most ${MAX_FREE_VALUES} values`
})

/** Stops counting when there are too many. */
function valuesIn (table: object): number {
  const open: object[] = [table]
  let count = 0
  for (let next = open.pop(); next !== undefined && count <= MAX_FREE_VALUES; next = open.pop()) {
    for (const value of Object.values(next) as unknown[]) {
      count++
      if (typeof value === 'object' && value !== null && !(value instanceof Date)) open.push(value)
    }
  }
  return count
}
