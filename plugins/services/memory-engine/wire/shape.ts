import { WireError } from './error.js'

/** One line of a 422's `detail`. */
export interface Problem {
  readonly type: string
  readonly loc: readonly (string | number)[]
  readonly msg: string
  readonly input: unknown
  readonly ctx?: Readonly<Record<string, unknown>>
}

export interface Reading {
  readonly problems: Problem[]
  /** Keys that nothing here knows. */
  readonly ignored: Set<string>
}

type Place = readonly (string | number)[]

/** Reads a value, or notes what is wrong with it; what it returns then is never used. */
export type Shape<T> = (value: unknown, at: Place, reading: Reading) => T

/** A field of an object. `fallback` makes it optional. */
export interface Field<T> {
  readonly shape: Shape<T>
  readonly fallback?: { readonly value: T }
}
type Fields = Readonly<Record<string, Field<unknown>>>
type Read<F extends Fields> = { readonly [K in keyof F]: F[K] extends Field<infer T> ? T : never }

function wrong (type: string, msg: string, ctx?: Readonly<Record<string, unknown>>) {
  return (value: unknown, at: Place, reading: Reading): never => {
    reading.problems.push({ type, loc: at, msg, input: value === undefined ? null : value, ...ctx === undefined ? {} : { ctx } })
    return undefined as never
  }
}

/** Without NUL, which ends a text in the database. */
export const text: Shape<string> = (value, at, reading) =>
  typeof value === 'string' ? value.replaceAll('\0', '') : wrong('string_type', 'Input should be a valid string')(value, at, reading)

/** Longer ones are refused. */
export function textUpTo (most: number): Shape<string> {
  return (value, at, reading) => typeof value === 'string' && value.length > most
    ? wrong('string_too_long', `String should have at most ${most} characters`, { max_length: most })(value, at, reading)
    : text(value, at, reading)
}

export const bool: Shape<boolean> = (value, at, reading) => {
  if (typeof value === 'boolean') return value
  if (value === 1 || value === 0) return value === 1
  if (typeof value === 'string') {
    if (/^(true|1|yes|on|t|y)$/i.test(value)) return true
    if (/^(false|0|no|off|f|n)$/i.test(value)) return false
    return wrong('bool_parsing', 'Input should be a valid boolean, unable to interpret input')(value, at, reading)
  }
  return wrong('bool_type', 'Input should be a valid boolean')(value, at, reading)
}

export interface Bounds { readonly min?: number, readonly max?: number }

function bounded (value: number, { min, max }: Bounds, at: Place, reading: Reading): number {
  if (min !== undefined && value < min) return wrong('greater_than_equal', `Input should be greater than or equal to ${min}`, { ge: min })(value, at, reading)
  if (max !== undefined && value > max) return wrong('less_than_equal', `Input should be less than or equal to ${max}`, { le: max })(value, at, reading)
  return value
}

export function int (bounds: Bounds = {}): Shape<number> {
  return (value, at, reading) => {
    if (typeof value === 'string') {
      if (!/^\s*[+-]?\d{1,15}\s*$/.test(value)) {
        return wrong('int_parsing', 'Input should be a valid integer, unable to parse string as an integer')(value, at, reading)
      }
      return bounded(Number(value), bounds, at, reading)
    }
    if (typeof value !== 'number') return wrong('int_type', 'Input should be a valid integer')(value, at, reading)
    if (!Number.isSafeInteger(value)) {
      return wrong('int_from_float', 'Input should be a valid integer, got a number with a fractional part')(value, at, reading)
    }
    return bounded(value, bounds, at, reading)
  }
}

export function number (bounds: Bounds = {}): Shape<number> {
  return (value, at, reading) => {
    const read = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
    if (typeof read !== 'number' || !Number.isFinite(read)) return wrong('float_type', 'Input should be a valid number')(value, at, reading)
    return bounded(read, bounds, at, reading)
  }
}

export function oneOf<const T extends readonly string[]> (...names: T): Shape<T[number]> {
  const quoted = names.map(name => `'${name}'`)
  const expected = quoted.length === 1 ? quoted[0]! : `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)!}`
  return (value, at, reading) => names.includes(value as string) ? value as T[number]
    : wrong('literal_error', `Input should be ${expected}`, { expected })(value, at, reading)
}

/** One of more than `most` items is refused before they are read. */
export function listOf<T> (shape: Shape<T>, most = Infinity): Shape<readonly T[]> {
  return (value, at, reading) => {
    if (!Array.isArray(value)) return wrong('list_type', 'Input should be a valid list')(value, at, reading)
    if (value.length > most) return wrong('too_long', `List should have at most ${most} items`, { max_length: most })(value, at, reading)
    return value.map((item, i) => shape(item, [...at, i], reading))
  }
}

export function mapOf<T> (shape: Shape<T>): Shape<Readonly<Record<string, T>>> {
  return (value, at, reading) => isMap(value)
    ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, shape(item, [...at, key], reading)]))
    : wrong('dict_type', 'Input should be a valid dictionary')(value, at, reading)
}

export function nullable<T> (shape: Shape<T>): Shape<T | null> {
  return (value, at, reading) => value === null ? null : shape(value, at, reading)
}

export const anything: Shape<unknown> = value => value

/** An object of these fields; others are noted as ignored, by their path. */
export function object<F extends Fields> (fields: F): Shape<Read<F>> {
  return (value, at, reading) => {
    if (!isMap(value)) {
      return wrong('model_attributes_type', 'Input should be a valid dictionary or object to extract fields from')(value, at, reading)
    }
    const read: Record<string, unknown> = {}
    for (const [name, { shape, fallback }] of Object.entries(fields)) {
      const given = Object.hasOwn(value, name) ? value[name] : undefined
      if (given !== undefined) read[name] = shape(given, [...at, name], reading)
      else if (fallback !== undefined) read[name] = fallback.value
      else reading.problems.push({ type: 'missing', loc: [...at, name], msg: 'Field required', input: value })
    }
    for (const name of Object.keys(value)) {
      if (!Object.hasOwn(fields, name)) reading.ignored.add([...at.slice(1), name].join('.'))
    }
    return read as Read<F>
  }
}

export function required<T> (shape: Shape<T>): Field<T> {
  return { shape }
}

/** Missing: `value`. */
export function optional<T> (shape: Shape<T>, value: T): Field<T> {
  return { shape, fallback: { value } }
}

/** Missing or null: null. */
export function maybe<T> (shape: Shape<T>): Field<T | null> {
  return { shape: nullable(shape), fallback: { value: null } }
}

/** No page of a list has more items. */
const LONGEST_PAGE = 10_000

/** The `limit` of a list. A larger one than a page may have is read as that. */
export function pageLimit (preset: number, min = 1): Field<number> {
  return optional((value, at, reading) => Math.min(int({ min })(value, at, reading), LONGEST_PAGE), preset)
}

/** Of a list for which the wire has no pages: see `listed`. */
export const unpaged = { limit: pageLimit(1000), offset: optional(int({ min: 0 }), 0) }

/** Notes a problem that the shape alone cannot tell. */
export function invalid (reading: Reading, at: Place, msg: string, input: unknown): never {
  return wrong('value_error', `Value error, ${msg}`, { error: {} })(input, at, reading)
}

/** Values take many times their bytes, and a thread that runs out of memory fails all who wait for it. */
const MOST_JSON_BYTES = 32 * 1024 * 1024

/** A JSON body of this shape. Throws the 422 with all that is wrong, and 413. */
export function readBody<T> (body: Buffer, headers: Readonly<Record<string, string>>, ignored: Set<string>, shape: Shape<T>): T {
  if (body.length === 0) throw unprocessable([{ type: 'missing', loc: ['body'], msg: 'Field required', input: null }])
  if (body.length > MOST_JSON_BYTES) {
    throw new WireError(413, `The body is larger than ${MOST_JSON_BYTES / 1024 / 1024} MB; send it in parts`)
  }
  const reading: Reading = { problems: [], ignored }
  const isJson = /^application\/([^;]*\+)?json\b/i.test(headers['content-type'] ?? 'application/json')
  let value: unknown = body.toString('utf8')
  if (isJson) {
    try {
      value = JSON.parse(value as string)
    } catch (error) {
      const at = Number(/position (\d+)/.exec((error as Error).message)?.[1] ?? 0)
      throw unprocessable([{ type: 'json_invalid', loc: ['body', at], msg: 'JSON decode error', input: {}, ctx: { error: 'Expecting value' } }])
    }
  }
  const read = shape(value, ['body'], reading)
  if (reading.problems.length > 0) throw unprocessable(reading.problems)
  return read
}

/** A body that may be left out: `null` then. */
export function readOptionalBody<T> (
  body: Buffer, headers: Readonly<Record<string, string>>, ignored: Set<string>, shape: Shape<T>
): T | null {
  if (body.length === 0 || body.toString('utf8').trim() === 'null') return null
  return readBody(body, headers, ignored, shape)
}

/** What this shape reads of a value that no request sent; null if it is another. */
export function readAs<T> (shape: Shape<T>, value: unknown): T | null {
  const reading: Reading = { problems: [], ignored: new Set() }
  const read = shape(value, [], reading)
  return reading.problems.length > 0 ? null : read
}

/** The query's parameters. Those of `lists` may come more than once. */
export function readQuery<F extends Fields> (
  query: URLSearchParams, ignored: Set<string>, fields: F, lists: readonly string[] = []
): Read<F> {
  const reading: Reading = { problems: [], ignored }
  const given: Record<string, unknown> = {}
  for (const name of new Set(query.keys())) given[name] = lists.includes(name) ? query.getAll(name) : query.getAll(name).at(-1)
  const read = object(fields)(given, ['query'], reading)
  if (reading.problems.length > 0) throw unprocessable(reading.problems)
  return read
}

const MOST_PROBLEMS = 50
const LONGEST_INPUT = 200

/** What was sent is quoted up to a bound: a refusal is no larger than what it refuses. */
export function unprocessable (problems: readonly Problem[]): WireError {
  return new WireError(422, problems.slice(0, MOST_PROBLEMS).map(problem => ({ ...problem, input: shortened(problem.input) })))
}

function shortened (input: unknown): unknown {
  if (typeof input === 'string') return input.slice(0, LONGEST_INPUT)
  return (JSON.stringify(input) ?? '').length > LONGEST_INPUT ? Array.isArray(input) ? [] : {} : input
}

function isMap (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
