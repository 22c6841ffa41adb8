import type { Problem } from '../check/shape-check.js'
import { isReservedVariable } from './reserved-variables.js'

export interface SecretsEnv {
  readonly values: ReadonlyMap<string, string>
  readonly problems: readonly (Problem & { readonly line: number })[]
}

const LINE = /^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)$/

/**
 * api.env: `KEY="value"` a line, backslash and double quote escaped by a backslash. Also reads what
 * systemd's EnvironmentFile takes: no quotes, single quotes, comments, `export`. The last line of a key wins.
 * Problems name line and key, never a value. Pure.
 */
export function parseSecretsEnv (text: string): SecretsEnv {
  const values = new Map<string, string>()
  const problems: (Problem & { readonly line: number })[] = []
  text.replace(/^\uFEFF/, '').split(/\r?\n/).forEach((raw, i) => {
    const line = raw.trim()
    if (line === '' || line.startsWith('#') || line.startsWith(';')) return
    const [, key, rest] = LINE.exec(line) ?? []
    const value = rest === undefined ? null : unquote(rest)
    if (key !== undefined && isReservedVariable(key)) {
      problems.push({ path: [key], line: i + 1, unknown: false, message: `is an environment variable that controls programs, not a secret; remove it (line ${i + 1})` })
    } else if (key !== undefined && value !== null) values.set(key, value)
    else problems.push({ path: key === undefined ? [] : [key], line: i + 1, unknown: false, message: `is not KEY="value" (line ${i + 1})` })
  })
  return { values, problems }
}

/** Sets a key in place, also where it is commented out, and removes its other lines; appends a new one. Pure. */
export function setSecretLine (text: string, key: string, value: string): string {
  const fresh = `${key}="${value.replace(/["\\]/g, '\\$&')}"`
  const lines = text === '' ? [] : text.replace(/\n$/, '').split('\n')
  const first = lines.findIndex(line => isLineOf(line, key))
  if (first === -1) return [...lines, fresh, ''].join('\n')
  const kept = lines.map((line, i) => i === first ? fresh : line).filter((line, i) => i === first || !isLineOf(line, key))
  return [...kept, ''].join('\n')
}

/** Removes every line of a key, commented ones too. Pure. */
export function removeSecretLines (text: string, key: string): string {
  return text.split('\n').filter(line => !isLineOf(line, key)).join('\n')
}

function isLineOf (line: string, key: string): boolean {
  return LINE.exec(line.trim().replace(/^#\s*/, ''))?.[1] === key
}

function unquote (rest: string): string | null {
  const text = rest.trim()
  if (text.startsWith('"')) {
    const inner = /^"((?:[^"\\]|\\.)*)"\s*(?:#.*)?$/.exec(text)?.[1]
    return inner === undefined ? null : inner.replace(/\\(.)/g, '$1')
  }
  if (text.startsWith('\'')) return /^'([^']*)'\s*(?:#.*)?$/.exec(text)?.[1] ?? null
  return text
}
