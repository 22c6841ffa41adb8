import type { z } from 'zod'
import { svcError, type Diagnostic, type SvcError } from '../../contract/index.js'
import { issueText, typeName, type Audience } from './issue-text.js'
import { keyPaths, keysAt } from './schema-keys.js'
import { suggest } from '../../contract/text/suggest.js'

/** One thing wrong in a value. `path` is as the user wrote it; `message` holds no submitted value for clients. */
export interface Problem {
  readonly path: readonly string[]
  readonly message: string
  /** The key itself is the problem. */
  readonly unknown: boolean
  /** Stands for so many problems that are not listed. */
  readonly more?: number
}

/** A longer list is not read, and what it costs to write one must not grow with what was sent. */
export const MAX_PROBLEMS = 50
const MAX_KEY_LENGTH = 200

export interface ShapeOptions {
  readonly audience: Audience
  /** The value ends in a file, which holds whole characters only. */
  readonly written?: boolean
  /** From the path in the checked value to the path the user wrote. */
  readonly userPath?: (path: readonly string[]) => readonly string[]
  /** Keys that readers accept at the top level besides those of the schema; for suggestions only. */
  readonly alsoKnown?: readonly string[]
}

export type Checked<T> =
  | { readonly value: T, readonly problems: readonly [] }
  | { readonly value: null, readonly problems: readonly Problem[] }

/** Validates against a schema and says what is wrong, in words for people; many problems are counted only. Pure. */
export function checkShape<S extends z.ZodType> (schema: S, input: unknown, options: ShapeOptions): Checked<z.output<S>> {
  const explain = issueText(options.audience)
  // an issue costs most when it is put into words; a union asks for those of each way
  let told = 0
  const result = schema.safeParse(input, { error: issue => told++ < MAX_PROBLEMS * 10 ? explain(issue) : 'is not allowed' })
  const userPath = options.userPath ?? (path => path)
  if (result.success) {
    const odd = options.written === true ? halfCharacter(input, []) : null
    if (odd === null) return { value: result.data, problems: [] }
    return { value: null, problems: [{ path: userPath(odd), message: 'must be valid UTF-8 text', unknown: false }] }
  }
  const unknown = unknownKeys(schema, options)
  const problems: Problem[] = []
  let count = 0
  for (const issue of result.error.issues) {
    const isKeys = issue.code === 'unrecognized_keys'
    count += isKeys ? issue.keys.length : 1
    const room = MAX_PROBLEMS - problems.length
    if (room <= 0) continue
    const path = issue.path.map(String)
    if (isKeys) {
      const keys = issue.keys.slice(0, room)
      problems.push(...keys.map(key => ({ path: userPath([...path, key]), message: unknown(path, key), unknown: true })))
    } else {
      problems.push({ path: userPath(path), message: withReceived(issue, input), unknown: false })
    }
  }
  return { value: null, problems: count > problems.length ? [...problems, moreProblems(count - problems.length)] : problems }
}

function moreProblems (more: number): Problem {
  return { path: [], message: `${more} more ${more === 1 ? 'problem' : 'problems'} not listed here`, unknown: false, more }
}

/** Where a text has half of a surrogate pair: a file would hold another character. What passed its schema is not deep. */
function halfCharacter (value: unknown, path: readonly string[]): readonly string[] | null {
  if (typeof value === 'string') return /\p{Surrogate}/u.test(value) ? path : null
  if (typeof value !== 'object' || value === null) return null
  for (const [key, inner] of Object.entries(value)) {
    const found = halfCharacter(key, path) ?? halfCharacter(inner, [...path, key])
    if (found !== null) return found
  }
  return null
}

export function dotted (path: readonly PropertyKey[]): string {
  return path.map(key => {
    const word = shortened(String(key))
    return /^[\w-]*$/.test(word) ? word : JSON.stringify(word)
  }).join('.')
}

export function toDiagnostics (file: string, problems: readonly Problem[],
  lineOf: (path: readonly string[]) => number | undefined = () => undefined): readonly Diagnostic[] {
  return problems.map(problem => {
    const line = lineOf(problem.path)
    return { file, path: dotted(problem.path), message: problem.message, ...(line === undefined ? {} : { line }) }
  })
}

/**
 * `validation.unknown_keys` when keys are unknown, else `validation.invalid`; both list all fields. `what` names the
 * thing that was refused: `slot agent`.
 */
export function invalid (what: string, all: readonly Problem[]): SvcError {
  const problems = listed(all)
  const fields = problems.map(problem => ({ path: dotted(problem.path), message: problem.message }))
  const text = fields.map(field => field.path === '' ? field.message : `${field.path} ${field.message}`).join('; ')
  const param = fields[0]?.path === undefined || fields[0].path === '' ? {} : { param: fields[0].path }
  const unknown = problems.filter(problem => problem.unknown)
  if (unknown.length === 0) return svcError('validation.invalid', `${what} is not valid: ${text}`, { details: { fields }, ...param })
  return svcError('validation.unknown_keys', `${what} has unknown keys: ${text}`, {
    details: {
      unknown_keys: unknown.map(problem => dotted(problem.path)),
      hint: unknown.map(problem => `${dotted(problem.path)} ${problem.message}`).join('; '),
      fields
    },
    ...param
  })
}

/** The first problems, and how many there are besides. */
function listed (problems: readonly Problem[]): readonly Problem[] {
  const told = problems.filter(problem => problem.more === undefined)
  const first = told.slice(0, MAX_PROBLEMS)
  const more = problems.reduce((sum, problem) => sum + (problem.more ?? 0), 0) + told.length - first.length
  return more === 0 ? first : [...first, moreProblems(more)]
}

/** Says what is wrong with one key after the other. What the schema has is looked up once, and listed once for each table. */
function unknownKeys (schema: z.ZodType, options: ShapeOptions): (at: readonly string[], key: string) => string {
  let paths: readonly string[] | null = null
  const tables = new Map<string, { readonly keys: readonly string[], listed: boolean }>()
  return (at, key) => {
    paths ??= keyPaths(schema)
    const also = at.length === 0 ? options.alsoKnown ?? [] : []
    const table = tables.get(dotted(at)) ?? { keys: [...keysAt(schema, at), ...also], listed: false }
    tables.set(dotted(at), table)
    const homes = paths.filter(path => path.endsWith(`.${key}`) && path !== dotted([...at, key]))
    if (homes.length === 1) return `is not a key of this table; it belongs in [${homes[0]!.slice(0, -key.length - 1)}]`
    const meant = suggest(key, table.keys)
    if (meant !== null) return `is not a known key; did you mean ${meant}?`
    if (table.listed) return 'is not a known key'
    table.listed = true
    return `is not a known key; known here: ${[...table.keys].sort().join(', ')}`
  }
}

function shortened (word: string): string {
  return word.length > MAX_KEY_LENGTH ? `${word.slice(0, MAX_KEY_LENGTH)}…` : word
}

/** Messages of the schemas' own say what is allowed; what was found instead is added where the type is wrong. */
function withReceived (issue: z.core.$ZodIssue, input: unknown): string {
  const { message } = issue
  if (issue.code !== 'invalid_type' && issue.code !== 'invalid_union' && issue.code !== 'invalid_format') return message
  const found = valueAt(input, issue.path)
  if (message.startsWith('is required') || /\b(got|too large)\b/.test(message)) return message
  if (found === undefined) return `is required: ${message}`
  return issue.code === 'invalid_format' ? message : `${message}, got ${typeName(found)}`
}

function valueAt (input: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((at, key) => typeof at === 'object' && at !== null ? (at as Record<PropertyKey, unknown>)[key] : undefined, input)
}
