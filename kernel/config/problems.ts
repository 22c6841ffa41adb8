import type { z } from 'zod'
import { svcError, type Diagnostic, type SvcError } from '../contract/index.js'
import { issueText, typeName, type Audience } from './issue-text.js'
import { keyPaths, keysAt } from './schema-keys.js'
import { suggest } from './suggest.js'

/** One thing wrong in a value. `path` is as the user wrote it; `message` holds no submitted value for clients. */
export interface Problem {
  readonly path: readonly string[]
  readonly message: string
  /** The key itself is the problem. */
  readonly unknown: boolean
}

export interface ShapeOptions {
  readonly audience: Audience
  /** From the path in the checked value to the path the user wrote. */
  readonly userPath?: (path: readonly string[]) => readonly string[]
  /** Keys that readers accept at the top level besides those of the schema; for suggestions only. */
  readonly alsoKnown?: readonly string[]
}

export type Checked<T> =
  | { readonly value: T, readonly problems: readonly [] }
  | { readonly value: null, readonly problems: readonly Problem[] }

/** Validates against a schema and says everything that is wrong, in words for people. Pure. */
export function checkShape<S extends z.ZodType> (schema: S, input: unknown, options: ShapeOptions): Checked<z.output<S>> {
  const result = schema.safeParse(input, { error: issueText(options.audience) })
  if (result.success) return { value: result.data, problems: [] }
  const userPath = options.userPath ?? (path => path)
  const problems = result.error.issues.flatMap(issue => issue.code === 'unrecognized_keys'
    ? issue.keys.map(key => unknownKey(schema, issue.path, key, options, userPath))
    : [{ path: userPath(issue.path.map(String)), message: withReceived(issue, input), unknown: false }])
  return { value: null, problems }
}

export function dotted (path: readonly PropertyKey[]): string {
  return path.map(key => {
    const word = String(key)
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
export function invalid (what: string, problems: readonly Problem[]): SvcError {
  const fields = problems.map(problem => ({ path: dotted(problem.path), message: problem.message }))
  const listed = fields.map(field => field.path === '' ? field.message : `${field.path} ${field.message}`).join('; ')
  const param = fields[0]?.path === undefined || fields[0].path === '' ? {} : { param: fields[0].path }
  const unknown = problems.filter(problem => problem.unknown)
  if (unknown.length === 0) return svcError('validation.invalid', `${what} is not valid: ${listed}`, { details: { fields }, ...param })
  return svcError('validation.unknown_keys', `${what} has unknown keys: ${listed}`, {
    details: {
      unknown_keys: unknown.map(problem => dotted(problem.path)),
      hint: unknown.map(problem => `${dotted(problem.path)} ${problem.message}`).join('; '),
      fields
    },
    ...param
  })
}

function unknownKey (schema: z.ZodType, at: readonly PropertyKey[], key: string, options: ShapeOptions,
  userPath: (path: readonly string[]) => readonly string[]): Problem {
  const here = [...keysAt(schema, at), ...(at.length === 0 ? options.alsoKnown ?? [] : [])]
  const homes = keyPaths(schema).filter(path => path.endsWith(`.${key}`) && path !== dotted([...at, key]))
  const meant = suggest(key, here)
  const message = homes.length === 1 ? `is not a key of this table; it belongs in [${homes[0]!.slice(0, -key.length - 1)}]`
    : meant !== null ? `is not a known key; did you mean ${meant}?` : `is not a known key; known here: ${[...here].sort().join(', ')}`
  return { path: userPath([...at, key].map(String)), message, unknown: true }
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
