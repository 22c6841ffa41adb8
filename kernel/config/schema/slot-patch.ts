import { isDeepStrictEqual } from 'node:util'
import { slotConfigSchema } from '../../contract/index.js'
import { isKnownPath } from '../schema-keys.js'
import type { Problem } from '../problems.js'
import { valueAt, withoutValue, withValue } from '../table-path.js'
import { isTable, type Table } from '../toml-file.js'
import { slotEntries, type SlotEntry } from './slot-entries.js'
import { foldSlotFile, type FoldedSlot } from './slot-file.js'

export interface PatchedSlot {
  readonly raw: Table
  /** Problems of the patch itself: a value given twice, keys to delete that do not exist. */
  readonly problems: readonly Problem[]
  /** From a path of the configuration to the path in the patch, or in the file where the patch does not touch it. */
  readonly userPath: (path: readonly string[]) => readonly string[]
}

/**
 * A slot file with a patch in it (reference 2.2): scalars and lists replace, tables merge one level deep, null deletes.
 * A value stays where the user wrote it, whatever placement the patch uses; what is new goes where the file keeps its
 * kind. Values that do not change are not touched. Pure.
 */
export function patchSlotFile (raw: Table, patch: Table): PatchedSlot {
  const file = foldSlotFile(raw)
  const entries = slotEntries(patch)
  const patched = foldSlotFile(patch)
  let next = raw
  for (const entry of entries) next = applyEntry(next, entry, patched)
  return {
    raw: next,
    problems: [...patched.problems, ...entries.filter(entry => entry.value === null && !isKnown(entry, file)).map(entry => ({
      path: entry.user, message: 'is not a known key', unknown: true
    }))],
    userPath: path => mentions(entries, path) ? patched.userPath(path) : foldSlotFile(next).userPath(path)
  }
}

/** Looks at the file anew every time: one entry may move what another one names. */
function applyEntry (next: Table, entry: SlotEntry, patched: FoldedSlot): Table {
  const { canonical, value } = entry
  const file = foldSlotFile(next)
  const places = file.entries.filter(held => canonical.every((key, i) => held.canonical[i] === key) || isSpelledSo(held, entry))
  if (value === null) return places.reduce((at, held) => withoutValue(at, held.user), next)
  if (canonical.length === 1 && isEmptyTable(value)) return places.length > 0 ? next : withValue(next, canonical, {})
  const wanted = withoutNulls(valueAt(patched.value, canonical) ?? value)
  if (places.length > 0 && isDeepStrictEqual(valueAt(file.value, canonical), wanted)) return next
  const keep = places.find(held => held.rank === 0 && isDeepStrictEqual(held.canonical, canonical))
  const cleared = places.reduce((at, held) => held === keep ? at : withoutValue(at, held.user), next)
  return keep === undefined ? withNew(cleared, canonical, wanted, file) : withValue(cleared, keep.user, wanted)
}

/** Null deletes what has the name in the file, even where the name means a value of another kind (`image = "ref"`). */
function isSpelledSo (held: SlotEntry, entry: SlotEntry): boolean {
  const name = held.user[0] === 'slot' ? held.user.slice(1) : held.user
  return entry.value === null && entry.canonical.length === 1 && name.length === 1 && name[0] === entry.canonical[0]
}

/** A table with nothing in it merges nothing; it only makes sure that there is one. */
function isEmptyTable (value: unknown): boolean {
  return isTable(value) && Object.keys(value).length === 0
}

function withNew (next: Table, canonical: readonly string[], value: unknown, file: FoldedSlot): Table {
  const [table, key] = canonical
  if (key === undefined) return withValue(next, isTable(next.slot) && !isTable(value) ? ['slot', table!] : [table!], value)
  const sibling = file.entries.find(held => held.canonical[0] === table && held.user.at(-2) === table)
  const home = sibling === undefined ? [table!] : sibling.user.slice(0, -1)
  return withValue(freed(next, home), [...home, key], value)
}

/** `model = "x"` and `image = "ref"` are values with the name of a table; before the table can be, they move. */
function freed (next: Table, home: readonly string[]): Table {
  const [name] = home
  if (home.length > 1 || typeof next[name!] !== 'string') return next
  const value = next[name!]
  const cleared = withoutValue(next, [name!])
  return name === 'image' ? withValue(cleared, ['container_image'], value) : withValue(cleared, [name!, 'default'], value)
}

function isKnown (entry: SlotEntry, file: FoldedSlot): boolean {
  return isKnownPath(slotConfigSchema, entry.canonical) ||
    file.entries.some(held => isDeepStrictEqual(held.canonical, entry.canonical))
}

function mentions (entries: readonly SlotEntry[], path: readonly string[]): boolean {
  return entries.some(entry => entry.canonical.every((key, i) => path[i] === key))
}

/** Inside a value that replaces another, null can only mean absent: TOML has none. */
function withoutNulls (value: unknown): unknown {
  if (!isTable(value)) return value
  return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== null && item !== undefined)
    .map(([key, item]) => [key, withoutNulls(item)]))
}
