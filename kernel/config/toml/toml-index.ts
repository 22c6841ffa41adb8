import { parseDocument } from '@decimalturn/toml-patch'

/** A `key = value`. Lines count from 0, `last` is the one its value ends on; columns are of key start and value end. */
export interface KeyLine {
  readonly path: readonly string[]
  /** The key as it stands below its section: several parts when it is dotted. */
  readonly key: readonly string[]
  readonly line: number
  readonly last: number
  readonly from: number
  readonly to: number
  readonly inline: boolean
}

/** The root of the file (`line` -1), a `[table]`, or one entry of a `[[list]]`. */
export interface Section {
  readonly path: readonly string[]
  readonly line: number
  readonly list: boolean
  readonly keys: readonly KeyLine[]
}

/** Where everything of a TOML text stands, in its order. Throws what the parser throws. */
export function indexToml (text: string): readonly [Section, ...Section[]] {
  const root: KeyLine[] = []
  const sections: Section[] = []
  const counts = new Map<string, number>()
  for (const block of parseDocument(text).cst) {
    if (block.type === 'Comment') continue
    if (block.type === 'KeyValue') {
      root.push(keyLine([], block))
      continue
    }
    const name = block.key.item.value
    const list = block.type === 'TableArray'
    const path = list ? [...name, String(nextIndex(counts, name.join('\0')))] : name
    const keys = block.items.flatMap(item => item.type === 'KeyValue' ? [keyLine(path, item)] : [])
    sections.push({ path, line: block.loc.start.line - 1, list, keys })
  }
  return [{ path: [], line: -1, list: false, keys: root }, ...sections]
}

interface KeyValueNode {
  readonly key: { readonly value: string[], readonly loc: { readonly start: { readonly line: number, readonly column: number } } }
  readonly value: { readonly type: string, readonly loc: { readonly end: { readonly line: number, readonly column: number } } }
}

function keyLine (section: readonly string[], { key, value }: KeyValueNode): KeyLine {
  return {
    path: [...section, ...key.value],
    key: key.value,
    line: key.loc.start.line - 1,
    last: value.loc.end.line - 1,
    from: key.loc.start.column,
    to: value.loc.end.column,
    inline: value.type === 'InlineTable'
  }
}

function nextIndex (counts: Map<string, number>, name: string): number {
  const index = counts.get(name) ?? 0
  counts.set(name, index + 1)
  return index
}

/**
 * A finder of line numbers (from 1): of the key at a path, else of the table or key around it; undefined where the text has
 * nothing of the path. Entries of `[[name]]` lists have their index in the path.
 */
export function lineFinder (text: string): (path: readonly string[]) => number | undefined {
  const places = indexToml(text).flatMap(section => [section, ...section.keys])
  return path => {
    let best: { readonly path: readonly string[], readonly line: number } | undefined
    for (const place of places) {
      if (place.path.length > (best?.path.length ?? 0) && startsWith(path, place.path)) best = place
    }
    return best === undefined ? undefined : best.line + 1
  }
}

export function startsWith (path: readonly string[], prefix: readonly string[]): boolean {
  return prefix.length <= path.length && prefix.every((key, i) => key === path[i])
}
