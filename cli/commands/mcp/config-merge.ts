import { parse } from 'smol-toml'
import type { Connection } from './mcp-clients.js'

export type Merged =
  | { readonly kind: 'same' }
  | { readonly kind: 'changed', readonly text: string }
  /** It cannot be done without risk to what the user has. */
  | { readonly kind: 'refused', readonly why: string }

/** The text of a client's configuration with a connection in it; everything else in it stays. Pure. */
export function mergeConnection (before: string | null, name: string, connection: Connection): Merged {
  if (before === null || before.trim() === '') {
    const start = connection.format === 'yaml' && connection.text.startsWith('mcpServers') ? 'name: local\nversion: 1.0.0\nschema: v1\n' : ''
    return { kind: 'changed', text: `${start}${connection.text}` }
  }
  if (connection.format === 'json') return mergeJson(before, name, connection)
  return connection.format === 'toml' ? mergeToml(before, name, connection) : mergeYaml(before, connection)
}

function mergeJson (before: string, name: string, { path, entry }: Connection): Merged {
  let whole: unknown
  try {
    whole = JSON.parse(before.replace(/^\uFEFF/, ''))
  } catch {
    return { kind: 'refused', why: 'it is not plain JSON (does it have comments?), and rewriting it would lose the rest' }
  }
  if (!isTable(whole)) return { kind: 'refused', why: 'it is not a JSON object' }
  let table = whole
  for (const key of path) {
    const inner = table[key] ?? {}
    if (!isTable(inner)) return { kind: 'refused', why: `its ${key} is not an object` }
    table[key] = inner
    table = inner
  }
  if (JSON.stringify(table[name]) === JSON.stringify(entry)) return { kind: 'same' }
  table[name] = entry
  const indent = /^\{\r?\n([ \t]+)/.exec(before)?.[1] ?? '  '
  return { kind: 'changed', text: `${JSON.stringify(whole, null, indent)}\n` }
}

/** A table of its own at the end, or in place of the one that was written before. */
function mergeToml (before: string, name: string, { path, text }: Connection): Merged {
  const parsed = tomlOf(before)
  if (parsed === null) return { kind: 'refused', why: 'it is not valid TOML' }
  if (before.includes(text)) return { kind: 'same' }
  const outer = path.join('.')
  const tables = path.reduce<unknown>((table, key) => isTable(table) ? table[key] : undefined, parsed)
  if (!isTable(tables) || tables[name] === undefined) {
    const next = `${before.trimEnd()}\n\n${text}`
    return tomlOf(next) === null ? { kind: 'refused', why: `${outer} is written in a form that cannot be extended` } : { kind: 'changed', text: next }
  }
  const own = new RegExp(`^\\[${outer.replaceAll('.', '\\.')}\\.${name}\\]\\n(?:(?!\\[).*\\n?)*`, 'm')
  const next = before.replace(own, `${text}\n`)
  const isDone = next !== before && tomlOf(next) !== null
  return isDone ? { kind: 'changed', text: next } : { kind: 'refused', why: `its ${outer}.${name} has a different form` }
}

/** Nothing here reads YAML, so only what is surely right is done: a block of its own at the end. */
function mergeYaml (before: string, { text }: Connection): Merged {
  if (before.includes(text)) return { kind: 'same' }
  const key = text.slice(0, text.indexOf(':'))
  const isPlain = /^[\w-]+:/m.test(before) && !/^(---|\.\.\.|\t)/m.test(before)
  if (new RegExp(`^["']?${key}["']?\\s*:`, 'm').test(before)) return { kind: 'refused', why: `it already has ${key}` }
  return isPlain ? { kind: 'changed', text: `${before.trimEnd()}\n${text}` } : { kind: 'refused', why: 'its format does not allow adding a block' }
}

function tomlOf (text: string): Record<string, unknown> | null {
  try {
    return parse(text)
  } catch {
    return null
  }
}

function isTable (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
