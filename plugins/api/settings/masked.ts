import { isDeepStrictEqual } from 'node:util'
import { redact, redactLine } from 'svc-gateway/plugin'
import { isTable, type Table } from './changes.js'

/** Settings without what could be a secret. Pure. */
export function masked<T extends object> (settings: T): T {
  return redact(settings, redactLine) as T
}

/**
 * A patch without the values that only repeat the mask of what is there: who reads, changes one value and writes all of it
 * back must not write the mask over the secret. Pure.
 */
export function withoutMasks (patch: Table, present: object): Table {
  return unmask(patch, present as Table, masked(present) as Table)
}

function unmask (patch: Table, present: Table, mask: Table): Table {
  return Object.fromEntries(Object.entries(patch).flatMap(([key, value]) => {
    const [old, hidden] = [present[key], mask[key]]
    if (isTable(value) && isTable(old) && isTable(hidden)) return [[key, unmask(value, old, hidden)]]
    const repeats = isDeepStrictEqual(value, hidden) && !isDeepStrictEqual(hidden, old)
    return repeats ? [] : [[key, value]]
  }))
}
