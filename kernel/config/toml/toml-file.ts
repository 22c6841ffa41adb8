import { parse, TomlError } from 'smol-toml'
import type { Diagnostic } from '../../contract/index.js'
import { readText } from '../files/read-file.js'

export type Table = Record<string, unknown>

export type TomlText =
  | { readonly status: 'missing' }
  | { readonly status: 'ok', readonly text: string, readonly data: Table }
  | { readonly status: 'bad', readonly diagnostic: Diagnostic }

/** Reads and parses a TOML file. `file` is the name that the diagnostic shows. Never rejects. */
export async function readToml (path: string, file: string): Promise<TomlText> {
  const read = await readText(path, file)
  if (read.status !== 'ok') return read
  try {
    return { status: 'ok', text: read.text, data: parseToml(read.text) }
  } catch (error) {
    return { status: 'bad', diagnostic: tomlDiagnostic(error, read.text, file) }
  }
}

/** Plain objects all the way down; dates stay `TomlDate`. Throws smol-toml's `TomlError`. */
export function parseToml (text: string): Table {
  return plain(parse(text)) as Table
}

export function isTable (value: unknown): value is Table {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
}

/** What smol-toml says, without the excerpt of the file: the line may hold a secret. */
export function tomlDiagnostic (error: unknown, text: string, file: string): Diagnostic {
  if (!(error instanceof TomlError)) return { file, path: '', message: 'is not valid TOML' }
  const reason = error.message.split('\n', 1)[0]!.replace(/^Invalid TOML document: /, '')
  const lines = text.split('\n')
  const line = Math.min(error.line, lines.length)
  return { file, path: '', line, message: `is not valid TOML: ${reason} (line ${line}, column ${error.column})${hint(reason, line, lines)}` }
}

function hint (reason: string, line: number, lines: readonly string[]): string {
  const restIsEmpty = lines.slice(line).every(rest => rest.trim() === '')
  if (restIsEmpty && /unfinished|incomplete|end of|invalid value/.test(reason)) {
    return '; the file ends there; it may be truncated. Text needs quotes; lists and tables need their closing bracket'
  }
  if (reason === 'invalid value') return '; text needs quotes'
  return reason.includes('redefine') ? '; a key or table may occur only once' : ''
}

/** smol-toml gives objects without a prototype; deep comparison wants them all alike. */
function plain (value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (!isTable(value)) return value
  const copy: Table = {}
  for (const key of Object.keys(value)) {
    // assigned, it would be no key
    if (key === '__proto__') Object.defineProperty(copy, key, { value: plain(value[key]), enumerable: true, writable: true, configurable: true })
    else copy[key] = plain(value[key])
  }
  return copy
}
