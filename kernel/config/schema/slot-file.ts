import { isDeepStrictEqual } from 'node:util'
import {
  backendDevices, devices, slotConfigSchema, type Device, type WrittenSlot
} from '../../contract/index.js'
import type { Audience } from '../check/issue-text.js'
import { checkShape, dotted, type Checked, type Problem } from '../check/shape-check.js'
import { suggest } from '../../contract/text/suggest.js'
import { isTable, type Table } from '../toml/toml-file.js'
import { acceptedFlatKeys, slotEntries, type SlotEntry } from './slot-entries.js'

export interface FoldedSlot {
  /** In the form that `slotConfigSchema` takes. */
  readonly value: Table
  /** What only the file can have wrong: contradictions, old keys with impossible values. */
  readonly problems: readonly Problem[]
  readonly entries: readonly SlotEntry[]
  /** A word of its was looked up among those of providers. */
  readonly hasForeignWord: boolean
  /** From a path in `value` back to the path that the user wrote. */
  readonly userPath: (path: readonly string[]) => readonly string[]
}

/** Keys of older releases that mean nothing any more. Read and left alone. */
const ignoredKeys = new Set(['name', 'lru'])

/** Words of providers in files of any age (`LaidProviders`). */
export interface SlotWords {
  /** A provider's own name, for whatever name a file has for it. */
  canonical (written: string): string
  readonly deviceWords: ReadonlyMap<string, Device>
  readonly known: boolean
}

const ownWords: SlotWords = { canonical: name => name, deviceWords: new Map(), known: true }

/** For reading: a provider is looked up by what the file says when a snapshot is made, as providers come and go. */
export function wordsForReading ({ deviceWords, known }: SlotWords): SlotWords {
  return { ...ownWords, deviceWords, known }
}

/** Folds both placements of a slot file into one (kernel/config/README.md). Pure. */
export function foldSlotFile (raw: Table, words: SlotWords = ownWords): FoldedSlot {
  const entries = slotEntries(raw)
  const winners = winnersOf(entries)
  const value: Table = {}
  const problems: Problem[] = []
  for (const entry of entries) {
    if (entry.canonical.length === 1 && ignoredKeys.has(entry.canonical[0]!)) continue
    const rival = winners.get(keyOf(entry.canonical))!
    if (rival === entry) place(value, entry.canonical, translated(entry, problems, words))
    else if (entry.rank === 0 && !isDeepStrictEqual(rival.value, entry.value)) problems.push(contradiction(entry, rival))
  }
  derive(value)
  const hasForeignWord = entries.some(isForeignWord)
  return { value, problems, entries, hasForeignWord, userPath: path => userPathOf(entries, winners, path) }
}

/** Everything wrong with a slot file at once, or its configuration with all defaults. `name` is the file's stem. Pure. */
export function checkSlotFile (
  name: string, raw: Table, audience: Audience, folded = foldSlotFile(raw), userPath = folded.userPath
): Checked<WrittenSlot> {
  const checked = checkShape(slotConfigSchema, folded.value, {
    audience, userPath, alsoKnown: acceptedFlatKeys, written: audience === 'client'
  })
  const problems = [...folded.problems, ...nameProblems(name, folded.entries), ...checked.problems]
  if (problems.length > 0 || checked.value === null) return { value: null, problems }
  return { value: { name, ...checked.value }, problems: [] }
}

function keyOf (path: readonly string[]): string {
  return path.join('\0')
}

/** Which entry decides each value: the first one of the lowest rank. */
function winnersOf (entries: readonly SlotEntry[]): ReadonlyMap<string, SlotEntry> {
  const winners = new Map<string, SlotEntry>()
  for (const entry of entries) {
    const key = keyOf(entry.canonical)
    const best = winners.get(key)
    if (best === undefined || entry.rank < best.rank) winners.set(key, entry)
  }
  return winners
}

function place (value: Table, canonical: readonly string[], item: unknown): void {
  const [first, second] = canonical
  if (first === undefined || item === undefined) return
  if (second === undefined) {
    // a table that is really something else must reach the schema, whatever was written flat for it
    if (value[first] === undefined || !isTable(item)) define(value, first, item)
    return
  }
  const table = value[first]
  if (isTable(table)) define(table, second, item)
  else if (table === undefined) define(value, first, Object.fromEntries([[second, item]]))
}

/** Assigning to `__proto__` would change the prototype; this makes it a key like any other, for the schema to refuse. */
function define (table: Table, key: string, value: unknown): void {
  Object.defineProperty(table, key, { value, enumerable: true, configurable: true, writable: true })
}

/** Old names of providers and backends in today's words. */
function translated (entry: SlotEntry, problems: Problem[], words: SlotWords): unknown {
  const { value } = entry
  if (entry.canonical[0] === 'provider' && typeof value === 'string') return words.canonical(value)
  if (entry.canonical[0] !== 'device' || entry.rank === 0 || typeof value !== 'string' || value === 'auto') {
    return entry.rank === 1 && value === 'auto' ? undefined : value
  }
  if (!isForeignWord(entry)) return own(backendDevices, value) ?? value
  const device = words.deviceWords.get(value)
  if (device !== undefined || !words.known) return device
  const known = [...Object.keys(backendDevices), ...words.deviceWords.keys(), ...devices]
  const meant = suggest(value, known)
  const message = `must be one of ${known.join(', ')}${meant === null ? '' : `; did you mean ${meant}?`}; better, write \`device\``
  problems.push({ path: entry.user, message, unknown: false })
  return undefined
}

/** One that only a provider may have: the file means something else when the providers are others. */
function isForeignWord ({ canonical, rank, value }: SlotEntry): boolean {
  return canonical[0] === 'device' && rank > 0 && typeof value === 'string' && value !== 'auto' &&
    !Object.hasOwn(backendDevices, value) && !devices.some(device => device === value)
}

/** Of the record itself: a file may say "constructor". */
function own<T> (record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined
}

/** What a file that leaves `type` out means. */
function derive (value: Table): void {
  if (value.type === undefined && value.image !== undefined) value.type = 'image'
}

function contradiction (entry: SlotEntry, rival: SlotEntry): Problem {
  return { path: entry.user, message: `contradicts ${dotted(rival.user)}; keep one of the two`, unknown: false }
}

function nameProblems (name: string, entries: readonly SlotEntry[]): readonly Problem[] {
  return entries.flatMap(entry => {
    const problem = (message: string): readonly Problem[] => [{ path: entry.user, message, unknown: false }]
    if (entry.canonical.length !== 1) return []
    if (entry.canonical[0] === 'name' && entry.value !== name) {
      return problem(`must be ${name}, the name of the file without .toml; rename one of the two`)
    }
    return []
  })
}

/** The longest entry that the path goes through gives the beginning; the rest is as it is. */
function userPathOf (
  entries: readonly SlotEntry[], winners: ReadonlyMap<string, SlotEntry>, path: readonly string[]
): readonly string[] {
  for (let length = Math.min(path.length, 2); length > 0; length--) {
    const entry = winners.get(keyOf(path.slice(0, length)))
    if (entry !== undefined) return [...entry.user, ...path.slice(length)]
  }
  const sibling = entries.find(entry => entry.canonical.length === 2 && entry.canonical[0] === path[0] && entry.user.length > 1)
  return sibling === undefined ? path : [...sibling.user.slice(0, -1), ...path.slice(1)]
}
