import { isDeepStrictEqual } from 'node:util'
import { parse, patch } from '@decimalturn/toml-patch'
import { stringify } from 'smol-toml'
import { withValue } from './table-path.js'
import { isTable, parseToml, type Table } from './toml-file.js'
import { indexToml, type KeyLine, type Section } from './toml-index.js'

/** In capitals, the patcher looks for escapes in a way that takes minutes for many backslashes in a row. */
export const FORMAT = { escapeSequenceUpperCase: false }

/** Lines `from` to `to` (from 0, `to` excluded) become `lines`. */
export interface Edit { readonly from: number, readonly to: number, readonly lines: readonly string[] }

type Change =
  | { readonly kind: 'set', readonly key: KeyLine, readonly value: unknown }
  | { readonly kind: 'add', readonly path: readonly string[], readonly value: unknown }
  | { readonly kind: 'delete', readonly path: readonly string[] }

/**
 * Changes the lines of a TOML text that differ between `base` and `next`, and no other byte. The caller checks the result:
 * it may be wrong for forms that this does not know, and throws for changes inside of `[[lists]]`.
 */
export function editToml (text: string, base: Table, next: Table): string {
  const sections = indexToml(text)
  const newline = text.includes('\r\n') ? '\r\n' : '\n'
  const lines = text.split(/\r?\n/)
  const keys = new Map(sections.flatMap(section => section.keys).map(key => [keyOf(key.path), key]))
  const changes = differences(base, next, [], keys)
  const sets = changes.filter(change => change.kind === 'set')
  const edits = [
    ...sets.map(({ key, value }) => setEdit(lines, key, value, sets.length > MANY)),
    ...deleteEdits(lines, sections, changes.filter(change => change.kind === 'delete').map(({ path }) => path)),
    ...addEdits(lines, sections, changes.filter(change => change.kind === 'add'))
  ]
  // from the bottom up, so that line numbers stay true; of two at one place the insertion is the lower one
  edits.sort((a, b) => b.from - a.from || b.to - a.to || 1)
  for (const { from, to, lines: fresh } of edits) lines.splice(from, to - from, ...fresh)
  // the empty line above a deleted last table
  const deletes = changes.some(change => change.kind === 'delete')
  while (deletes && lines.length > 1 && lines.at(-1) === '' && lines.at(-2)!.trim() === '') lines.pop()
  return lines.join(newline)
}

/** So many values at once, or so long a list, are written without asking the patcher, which takes its time for each. */
const MANY = 64

/** What has to happen to which key; tables are entered, except inline ones: those are one value on one line. */
function differences (base: Table, next: Table, path: readonly string[], keys: ReadonlyMap<string, KeyLine>): readonly Change[] {
  const gone = Object.keys(base).filter(key => !Object.hasOwn(next, key))
  return [
    ...gone.map(key => ({ kind: 'delete', path: [...path, key] }) as const),
    ...Object.entries(next).flatMap(([key, value]): readonly Change[] => {
      const here = [...path, key]
      if (!Object.hasOwn(base, key)) return [{ kind: 'add', path: here, value }]
      const old = base[key]
      if (isDeepStrictEqual(old, value)) return []
      const line = keys.get(keyOf(here))
      // a table that takes the place of a value gets a section of its own; an inline one stays inline
      if (line !== undefined && (line.inline || !holdsTables(value))) return [{ kind: 'set', key: line, value }]
      if (isTable(old) && isTable(value)) return differences(old, value, here, keys)
      if (Array.isArray(old) && Array.isArray(value)) throw new RangeError('a list of tables')
      return [{ kind: 'delete', path: here }, { kind: 'add', path: here, value }]
    })
  ]
}

/** The patcher changes the one line, alone: it knows quotes, lists over several lines and the comments in them. */
function setEdit (lines: readonly string[], key: KeyLine, value: unknown, isOneOfMany: boolean): Edit {
  const before = lines[key.line]!.slice(0, key.from)
  const end = lines[key.last]!
  const trailing = end.slice(key.to)
  const old = lines.slice(key.line, key.last + 1).join('\n').slice(key.from)
  const alone = old.slice(0, old.length - trailing.length)
  const wanted = withValue({}, key.key, value)
  const plain = isOneOfMany || (Array.isArray(value) && value.length > MANY)
  const fresh = (plain ? inlineKey(key.key, value) : rewritten(alone, wanted, typeof value === 'string')).split('\n')
  const last = fresh.at(-1)!
  const oneLine = key.line === key.last && fresh.length === 1
  fresh[fresh.length - 1] = last + (oneLine ? aligned(trailing, key.to - before.length - last.length) : trailing)
  fresh[0] = before + fresh[0]!
  return { from: key.line, to: key.last + 1, lines: fresh }
}

/** Text goes on one line: over several it would take the file's line ends into the value. */
function rewritten (line: string, wanted: Table, isText: boolean): string {
  const patched = patch(`${line}\n`, withKnown(parse(line) as Table, parseToml(line), wanted), FORMAT).trimEnd()
  const right = isDeepStrictEqual(parseToml(patched), wanted) && !(isText && patched.includes('\n'))
  return right ? patched : stringify(wanted).trimEnd()
}

/** `wanted` with every value that is unchanged as the patcher reads it, so that it finds no difference there. */
export function withKnown (asRead: unknown, base: unknown, wanted: unknown): Table {
  return known(asRead, base, wanted) as Table
}

function known (asRead: unknown, base: unknown, wanted: unknown): unknown {
  if (isDeepStrictEqual(base, wanted)) return asRead
  if (isTable(asRead) && isTable(base) && isTable(wanted)) {
    return Object.fromEntries(Object.entries(wanted).map(([key, value]) => [key, known(asRead[key], base[key], value)]))
  }
  if (Array.isArray(asRead) && Array.isArray(base) && Array.isArray(wanted)) {
    return wanted.map((value, i) => i < base.length ? known(asRead[i], base[i], value) : value)
  }
  return wanted
}

/** Keeps a comment behind the value in its column as far as the new value leaves room. */
function aligned (trailing: string, room: number): string {
  const [, space = '', comment = ''] = /^(\s*)(.*)$/.exec(trailing) ?? []
  return comment === '' ? trailing : ' '.repeat(Math.max(Math.min(space.length, 2), space.length + room)) + comment
}

function deleteEdits (
  lines: readonly string[], sections: readonly Section[], paths: readonly (readonly string[])[]
): readonly Edit[] {
  const gone = new Set(paths.map(keyOf))
  const isGone = (path: readonly string[]): boolean => path.some((_, i) => gone.has(keyOf(path.slice(0, i + 1))))
  const edits: Edit[] = []
  if (gone.size === 0) return edits
  sections.forEach((section, i) => {
    if (section.line >= 0 && isGone(section.path)) {
      const next = sections[i + 1]
      const end = next === undefined ? lines.length : commentsAbove(lines, next.line)
      edits.push(deletion(lines, commentsAbove(lines, section.line), lastUsed(lines, section, end)))
      return
    }
    for (const key of section.keys) {
      if (isGone(key.path)) edits.push(deletion(lines, commentsAbove(lines, key.line), key.last + 1))
    }
  })
  return edits
}

/** Comments below the last key of a deleted table are the file's when an empty line parts them from it. */
export function lastUsed (lines: readonly string[], section: Section, end: number): number {
  let at = (section.keys.at(-1)?.last ?? section.line) + 1
  while (at < end && lines[at]!.trimStart().startsWith('#')) at++
  return at
}

/** Also takes the empty line below when there is one above as well. */
export function deletion (lines: readonly string[], from: number, to: number): Edit {
  const empty = (line: string | undefined): boolean => line !== undefined && line.trim() === ''
  const between = (from === 0 || empty(lines[from - 1])) && empty(lines[to]) && to < lines.length - 1
  return { from, to: between ? to + 1 : to, lines: [] }
}

/** The first of the comment lines right above a line. A block that begins the file is about the file and stays. */
export function commentsAbove (lines: readonly string[], line: number): number {
  let at = line
  while (at > 0 && lines[at - 1]!.trimStart().startsWith('#')) at--
  return at === 0 ? line : at
}

type Add = Extract<Change, { kind: 'add' }>

/** New keys go below the last key of their table, new tables to the end of the file. */
function addEdits (lines: readonly string[], sections: readonly Section[], adds: readonly Add[]): readonly Edit[] {
  const ending = lines.at(-1) === '' ? lines.length - 1 : lines.length
  const keys = new Map<number, string[]>()
  const tables: string[] = []
  const places = new Map<string, Place | null>()
  for (const { path, value } of adds) {
    const parent = keyOf(path.slice(0, -1))
    const known = places.get(parent)
    const place = known === undefined ? placeOfKey(lines, sections, path, ending) : known
    places.set(parent, place)
    if (place === null || holdsTables(value)) {
      tables.push('', ...stringify(withValue({}, path, value)).trimEnd().split('\n'))
      continue
    }
    const fresh = keys.get(place.at) ?? []
    keys.set(place.at, fresh)
    fresh.push(...keyText(place, path.at(-1)!, value))
  }
  const closed = (at: number, fresh: readonly string[]): readonly string[] => at === lines.length ? [...fresh, ''] : fresh
  const edits = [...keys].map(([at, fresh]) => {
    const crowds = at === firstComment(lines, sections) && at < ending
    return { from: at, to: at, lines: closed(at, crowds ? [...fresh, ''] : fresh) }
  })
  const body = ending === 0 && keys.size === 0 ? tables.slice(1) : tables
  return body.length === 0 ? edits : [...edits, { from: ending, to: ending, lines: closed(ending, body) }]
}

/** Where keys of a table go, and what stands before their names there. */
interface Place {
  readonly at: number
  readonly prefix: readonly string[]
  readonly indent: string
}

/** Null when the table of the key has no place in the file yet. */
function placeOfKey (
  lines: readonly string[], sections: readonly Section[], path: readonly string[], ending: number
): Place | null {
  const parent = path.slice(0, -1)
  const below = (key: KeyLine, prefix: readonly string[]): Place =>
    ({ at: key.last + 1, prefix, indent: /^\s*/.exec(lines[key.line]!)![0] })
  const keys = sections.flatMap(section => section.keys)
  const dotted = keys.findLast(key => key.key.length > 1 && isDeepStrictEqual(key.path.slice(0, -1), parent))
  if (dotted !== undefined) return below(dotted, dotted.key.slice(0, -1))
  const section = sections.find(held => !held.list && isDeepStrictEqual(held.path, parent))
  if (section === undefined) return null
  const last = section.keys.at(-1)
  if (last !== undefined) return below(last, [])
  return { at: section.line >= 0 ? section.line + 1 : firstComment(lines, sections) ?? ending, prefix: [], indent: '' }
}

/** The line where the first table with the comment above it begins. */
function firstComment (lines: readonly string[], sections: readonly Section[]): number | undefined {
  const first = sections[1]
  if (first === undefined || sections[0]!.keys.length > 0) return undefined
  let at = first.line
  while (at > 0 && lines[at - 1]!.trimStart().startsWith('#')) at--
  return at
}

function keyText ({ prefix, indent }: Place, name: string, value: unknown): readonly string[] {
  return inlineKey([...prefix, name], value).split('\n').map(line => indent + line)
}

/** `a.b = value`, as one entry. */
function inlineKey (key: readonly string[], value: unknown): string {
  const prefix = key.slice(0, -1).map(part => stringify({ [part]: 0 }).split(' =')[0]! + '.').join('')
  return prefix + stringify({ [key.at(-1)!]: value }).trimEnd()
}

function keyOf (path: readonly string[]): string {
  return path.join('\0')
}

function holdsTables (value: unknown): boolean {
  return isTable(value) || (Array.isArray(value) && value.some(isTable))
}
