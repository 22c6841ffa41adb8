import { isDeepStrictEqual } from 'node:util'
import { slotConfigSchema } from '../../contract/index.js'
import { isKnownPath } from '../check/schema-keys.js'
import type { Problem } from '../check/shape-check.js'
import { deleteValue, dropEmpty, setValue, tableCopy, valueAt } from '../toml/table-path.js'
import { isTable, type Table } from '../toml/toml-file.js'
import { slotEntries, type SlotEntry } from './slot-entries.js'
import { foldSlotFile, type FoldedSlot, type SlotWords } from './slot-file.js'

export interface PatchedSlot {
  readonly raw: Table
  /** Problems of the patch itself: a value given twice, keys to delete that do not exist. */
  readonly problems: readonly Problem[]
  /** From a path of the configuration to the path in the patch, or in the file where the patch does not touch it. */
  readonly userPath: (path: readonly string[]) => readonly string[]
}

/**
 * A slot file with a patch in it: scalars and lists replace, tables merge one level deep, null deletes.
 * A value stays where the user wrote it, whatever placement the patch uses; what is new goes where the file keeps its
 * kind. Values that do not change are not touched. Pure.
 */
export function patchSlotFile (raw: Table, patch: Table, words?: SlotWords): PatchedSlot {
  const entries = slotEntries(patch)
  const patched = foldSlotFile(patch, words)
  const known = new HeldEntries(foldSlotFile(raw, words))
  const next = tableCopy(raw)
  let held = known
  const changes = new Changes()
  for (const entry of entries) {
    if (changes.concern(entry)) {
      changes.settle(next)
      held = new HeldEntries(foldSlotFile(next, words))
      changes.clear()
    }
    applyEntry(next, entry, patched, held, changes)
  }
  changes.settle(next)
  const named = new Set(entries.map(entry => keyOf(entry.canonical)))
  let folded: FoldedSlot | null = null
  return {
    raw: next,
    problems: [...patched.problems, ...entries.filter(entry => entry.value === null && !isKnown(entry, known)).map(entry => ({
      path: entry.user, message: 'is not a known key', unknown: true
    }))],
    userPath: path => {
      const isGiven = path.some((_, i) => named.has(keyOf(path.slice(0, i + 1))))
      return isGiven ? patched.userPath(path) : (folded ??= foldSlotFile(next, words)).userPath(path)
    }
  }
}

/**
 * What a patch has changed since the file was last folded: one entry may move what another one names, and only then is the
 * file folded again. To fold it for each entry costs the square of their number.
 */
class Changes {
  readonly #keys = new Set<string>()
  readonly #tables = new Set<string>()
  readonly #left = new Map<string, readonly string[]>()
  #moved = false

  concern ({ canonical }: SlotEntry): boolean {
    const table = canonical[0]!
    // a table and a value that stands in its place are in each other's way
    const isThere = this.#keys.has(table) || this.#keys.has(keyOf(canonical))
    return this.#moved || isThere || (canonical.length === 1 && this.#tables.has(table))
  }

  add ({ canonical }: SlotEntry): void {
    this.#keys.add(keyOf(canonical))
    this.#tables.add(canonical[0]!)
  }

  /** Something that no entry of the patch names got another place. */
  addMove (): void {
    this.#moved = true
  }

  /** Takes a value out. Its table is looked at when all is done: to see after each value whether one is left costs the square. */
  remove (next: Table, path: readonly string[]): void {
    deleteValue(next, path)
    const table = path.slice(0, -1)
    this.#left.set(keyOf(table), table)
  }

  /** Tables that nothing is left of go as well. */
  settle (next: Table): void {
    for (const table of this.#left.values()) dropEmpty(next, table)
    this.#left.clear()
  }

  clear (): void {
    this.#keys.clear()
    this.#tables.clear()
    this.#moved = false
  }
}

/** The entries of a file by what they mean: none of them is searched for. */
class HeldEntries {
  readonly value: Table
  readonly #byKey = new Map<string, SlotEntry[]>()
  readonly #byTable = new Map<string, SlotEntry[]>()
  readonly #byName = new Map<string, SlotEntry[]>()
  readonly #homes = new Map<string, Map<string, readonly string[]>>()

  constructor ({ entries, value }: FoldedSlot) {
    this.value = value
    for (const entry of entries) {
      const { canonical, user } = entry
      const table = canonical[0]!
      const name = user[0] === 'slot' ? user.slice(1) : user
      push(this.#byKey, keyOf(canonical), entry)
      push(this.#byTable, table, entry)
      if (name.length === 1) push(this.#byName, name[0]!, entry)
      if (user.at(-2) !== table) continue
      const homes = this.#homes.get(table) ?? new Map<string, readonly string[]>()
      const home = user.slice(0, -1)
      this.#homes.set(table, homes.set(keyOf(home), home))
    }
  }

  has (canonical: readonly string[]): boolean {
    return this.#byKey.has(keyOf(canonical))
  }

  /** A value, or all of a table. Null means everything of that name, a value of another kind too (`image = "ref"`). */
  places ({ canonical, value }: SlotEntry): readonly SlotEntry[] {
    const [name] = canonical
    const meant = (canonical.length === 1 ? this.#byTable.get(name!) : this.#byKey.get(keyOf(canonical))) ?? []
    return value === null && canonical.length === 1 ? [...new Set([...meant, ...this.#byName.get(name!) ?? []])] : meant
  }

  /** Where the file keeps what is in a table, in its order. */
  homes (table: string): readonly (readonly string[])[] {
    return [...this.#homes.get(table)?.values() ?? []]
  }
}

function push (map: Map<string, SlotEntry[]>, key: string, entry: SlotEntry): void {
  const list = map.get(key)
  if (list === undefined) map.set(key, [entry])
  else list.push(entry)
}

function keyOf (path: readonly string[]): string {
  return path.join('\0')
}

/** Changes `next`, which no other code holds yet. */
function applyEntry (next: Table, entry: SlotEntry, patched: FoldedSlot, held: HeldEntries, changes: Changes): void {
  const { canonical, value } = entry
  const places = held.places(entry)
  if (value !== null && canonical.length === 1 && isEmptyTable(value)) {
    if (places.length === 0) setValue(next, canonical, {})
    changes.add(entry)
    return
  }
  const wanted = withoutNulls(valueAt(patched.value, canonical) ?? value)
  if (value !== null && places.length > 0 && isDeepStrictEqual(valueAt(held.value, canonical), wanted)) return
  const isHere = (place: SlotEntry): boolean => place.rank === 0 && isDeepStrictEqual(place.canonical, canonical)
  const keep = value === null ? undefined : places.find(isHere)
  for (const place of places) {
    if (place !== keep) changes.remove(next, place.user)
    changes.add(place)
  }
  changes.add(entry)
  if (keep !== undefined) setValue(next, keep.user, wanted)
  else if (value !== null) addValue(next, canonical, wanted, held, changes)
}

/** A table with nothing in it merges nothing; it only makes sure that there is one. */
function isEmptyTable (value: unknown): boolean {
  return isTable(value) && Object.keys(value).length === 0
}

function addValue (next: Table, canonical: readonly string[], value: unknown, held: HeldEntries, changes: Changes): void {
  const [table, key] = canonical
  if (key === undefined) return setValue(next, isTable(next.slot) && !isTable(value) ? ['slot', table!] : [table!], value)
  const home = held.homes(table!).find(path => isTable(valueAt(next, path))) ?? [table!]
  if (freeHome(next, home)) changes.addMove()
  setValue(next, [...home, key], value)
}

/** `model = "x"` and `image = "ref"` are values with the name of a table; before the table can be, they move. Whether one did. */
function freeHome (next: Table, home: readonly string[]): boolean {
  const [name] = home
  if (home.length > 1 || typeof next[name!] !== 'string') return false
  const value = next[name!]
  deleteValue(next, [name!])
  setValue(next, name === 'image' ? ['container_image'] : [name!, 'default'], value)
  return true
}

function isKnown (entry: SlotEntry, known: HeldEntries): boolean {
  return isKnownPath(slotConfigSchema, entry.canonical) || known.has(entry.canonical)
}

/** Inside a value that replaces another, null can only mean absent: TOML has none. */
function withoutNulls (value: unknown): unknown {
  if (!isTable(value)) return value
  return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== null && item !== undefined)
    .map(([key, item]) => [key, withoutNulls(item)]))
}
