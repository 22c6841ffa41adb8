import type { z } from 'zod'
import { kindsOf, suggest } from '../../contract/text/suggest.js'

/** Whether short plain values may be shown. Only files do: the reader of the message wrote the file. */
export type Audience = 'file' | 'client'

type RawIssue = z.core.$ZodRawIssue

const SENSITIVE = /(^|[._-])(env|auth|options|config|secrets?|tokens?|passwords?|credentials?|authorization|api_?keys?|keys?)([._-]|$)/i

/** An error map for `safeParse`: what is allowed and what was found, one short sentence each. */
export function issueText (audience: Audience): (issue: RawIssue) => string {
  return issue => describe(issue, audience)
}

/** What kind of thing a value is, in the words of a TOML file. Never the value. */
export function typeName (value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (value instanceof Date) return 'a date'
  if (typeof value === 'number' || typeof value === 'bigint') return Number.isInteger(Number(value)) ? 'a whole number' : 'a number'
  if (typeof value === 'string') return 'text'
  return typeof value === 'boolean' ? 'true or false' : 'a table'
}

export function isSensitive (path: readonly PropertyKey[]): boolean {
  return path.some(key => SENSITIVE.test(String(key)))
}

function describe (issue: RawIssue, audience: Audience): string {
  switch (issue.code) {
    case 'invalid_type': return wrongType(isWhole(issue) ? 'int' : issue.expected, issue.input)
    case 'invalid_value': return wrongValue(issue, audience)
    case 'too_small': return tooSmall(issue)
    case 'too_big': return `must be at most ${issue.maximum}${unit(issue.origin)}`
    case 'invalid_format': return `must be a valid ${issue.format}`
    case 'not_multiple_of': return `must be a multiple of ${issue.divisor}`
    case 'invalid_key': return `has a key that ${issue.issues[0]?.message ?? 'is not allowed'}`
    case 'invalid_union': return union(issue)
    default: return 'is not allowed'
  }
}

function wrongType (expected: string, input: unknown): string {
  if (input === undefined) return 'is required'
  const wanted = typeNames[expected] ?? expected
  const got = typeName(input)
  if (got === wanted) return `must be ${wanted} that is not too large`
  return `must be ${wanted}, got ${got}`
}

/** A schema for whole numbers says "number" for everything that is none at all. */
function isWhole (issue: RawIssue): boolean {
  const def = issue.inst?._zod.def as { readonly format?: string } | undefined
  return def?.format === 'safeint'
}

const typeNames: Readonly<Record<string, string>> = {
  string: 'text', number: 'a number', int: 'a whole number', boolean: 'true or false', array: 'a list', object: 'a table', record: 'a table'
}

function wrongValue (issue: Extract<RawIssue, { code?: 'invalid_value' }>, audience: Audience): string {
  const allowed = issue.values.map(String)
  const base = allowed.length === 1 ? `must be ${quoted(allowed[0]!)}` : `must be one of ${allowed.map(quoted).join(', ')}`
  const { input } = issue
  if (input === undefined) return `is required: ${base}`
  if (typeof input !== 'string') return `${base}; got ${typeName(input)}`
  const kinds = kindsOf(input, allowed)
  const meant = kinds.length > 0 ? kinds.join(' or ') : suggest(input, allowed)
  const guess = meant === null ? '' : `; did you mean ${quoted(meant)}?`
  return audience === 'file' && isPlain(input) && !isSensitive(issue.path ?? []) ? `${base}; got "${input}"${guess}` : `${base}${guess}`
}

function quoted (value: string): string {
  return value === '' ? 'empty' : value
}

/** Short enough and free of anything that a terminal or a log would interpret. */
function isPlain (value: string): boolean {
  return /^[\w .:/+-]{1,40}$/.test(value)
}

function tooSmall (issue: Extract<RawIssue, { code?: 'too_small' }>): string {
  if ((issue.origin === 'string' || issue.origin === 'array') && Number(issue.minimum) === 1) return 'must not be empty'
  return `must be ${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}${unit(issue.origin)}`
}

function unit (origin: string): string {
  return origin === 'string' ? ' characters long' : origin === 'array' ? ' entries long' : ''
}

function union (issue: Extract<RawIssue, { code?: 'invalid_union' }>): string {
  const ways = issue.errors.map(branch => branch[0]?.message).filter(message => message !== undefined)
  return ways.length === 0 ? `is not allowed, got ${typeName(issue.input)}` : [...new Set(ways)].join(', or ')
}
