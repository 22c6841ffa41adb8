import { isDeepStrictEqual } from 'node:util'
import { commentsAbove, deletion, lastUsed } from './toml-edit.js'
import { indexToml, startsWith, type Section } from './toml-index.js'
import { patchToml, stringifyToml } from './toml-patch.js'
import { isTable, parseToml, type Table } from './toml-file.js'

/** What is to happen to a file that is one list of tables, written `[[key]]`. Indices count its rows, broken ones too. */
export type RowChange =
  | { readonly kind: 'add', readonly row: Table }
  | { readonly kind: 'set', readonly index: number, readonly row: Table }
  | { readonly kind: 'delete', readonly index: number }

/**
 * The text with one row added, changed or removed; every other row keeps each byte, and what stays of a changed row keeps its
 * comments. Falls back on `patchToml` for rows that are not written as `[[key]]`. Throws what parsing `text` throws.
 */
export function patchRow (text: string, key: string, change: RowChange, onRewrite: (reason: string) => void): string {
  const base = parseToml(text)
  const next = changed(base, key, change)
  if (isDeepStrictEqual(base, next)) return text
  const result = attempt(() => edited(text, base, key, change, onRewrite))
  if (result !== null && attempt(() => isDeepStrictEqual(parseToml(result), next)) === true) return result
  return patchToml(text, next, onRewrite)
}

/** The rows as they are in a parsed file. */
export function rowsOf (data: Table, key: string): readonly unknown[] {
  const rows = data[key]
  return Array.isArray(rows) ? rows : []
}

function changed (base: Table, key: string, change: RowChange): Table {
  const rows = [...rowsOf(base, key)]
  if (change.kind === 'add') rows.push(change.row)
  else if (change.kind === 'set') rows[change.index] = change.row
  else rows.splice(change.index, 1)
  const { [key]: _, ...rest } = base
  return rows.length === 0 ? rest : { ...base, [key]: rows }
}

function edited (text: string, base: Table, key: string, change: RowChange, onRewrite: (reason: string) => void): string {
  const newline = text.includes('\r\n') ? '\r\n' : '\n'
  const lines = text.split(/\r?\n/)
  if (change.kind === 'add') return appended(lines, base, key, change.row).join(newline)
  const sections = indexToml(text)
  const { first, last, next } = placeOf(sections, key, change.index)
  const end = lastUsed(lines, last, next === undefined ? lines.length : commentsAbove(lines, next.line))
  if (change.kind === 'delete') {
    const { from, to } = deletion(lines, commentsAbove(lines, first.line), end)
    lines.splice(from, to - from)
    while (lines.length > 1 && lines.at(-1) === '' && lines.at(-2)!.trim() === '') lines.pop()
    return lines.join(newline)
  }
  // as a table of its own a row is what the line editor knows
  const header = lines[first.line]!
  const own = [header.replace('[[', '[').replace(']]', ']'), ...lines.slice(first.line + 1, end)].join('\n')
  const fresh = patchToml(own, { [key]: change.row }, onRewrite).trimEnd().split('\n')
  lines.splice(first.line, end - first.line, header, ...fresh.slice(1))
  return lines.join(newline)
}

interface RowPlace {
  readonly first: Section
  /** Its last table: `[key.filters]` belongs to it. */
  readonly last: Section
  readonly next: Section | undefined
}

function placeOf (sections: readonly Section[], key: string, index: number): RowPlace {
  const path = [key, String(index)]
  const at = sections.findIndex(section => section.list && isDeepStrictEqual(section.path, path))
  const isPart = (section: Section): boolean => !section.list && startsWith(section.path, [key])
  let end = at
  while (sections[end + 1] !== undefined && isPart(sections[end + 1]!)) end++
  const [first, last] = [sections[at], sections[end]]
  if (first === undefined || last === undefined) throw new RangeError('the row is not written as a table')
  return { first, last, next: sections[end + 1] }
}

function appended (lines: readonly string[], base: Table, key: string, row: Table): readonly string[] {
  if (base[key] !== undefined && !(Array.isArray(base[key]) && base[key].every(isTable) && base[key].length > 0)) {
    throw new RangeError('the list is not written as tables')
  }
  const kept = [...lines]
  while (kept.at(-1)?.trim() === '') kept.pop()
  const block = stringifyToml({ [key]: [row] }).trimEnd().split('\n')
  return [...kept, ...(kept.length === 0 ? [] : ['']), ...block, '']
}

function attempt<T> (work: () => T): T | null {
  try {
    return work()
  } catch {
    return null
  }
}
