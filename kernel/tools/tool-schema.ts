import { z } from 'zod'
import type { JsonSchema } from '../contract/index.js'

type Json = Record<string, unknown>

/** Deeper than this a schema that refers to itself says no more. */
const MAX_DEPTH = 12

/** Of an object. */
export interface ObjectSchema extends JsonSchema {
  readonly properties: Readonly<Record<string, unknown>>
  readonly required?: readonly string[]
}

/** What no client needs and some models' providers refuse. */
const DROPPED: ReadonlySet<string> = new Set([
  '$schema', '$id', 'id', 'additionalProperties', 'propertyNames', 'deprecated', 'examples', 'apply_class'
])

/** Plugins that start anew make their routes anew, with the same schemas. */
const known = { input: new WeakMap<z.ZodType, ObjectSchema>(), output: new WeakMap<z.ZodType, ObjectSchema>() } as const

/**
 * The JSON Schema of an object as clients take it: no references, no `additionalProperties`, `properties` always there.
 * The same object each time, for a schema. Throws where zod cannot say it as JSON, and for what is no object at its root,
 * which would cost a client the whole list.
 */
export function objectSchema (schema: z.ZodType, io: 'input' | 'output'): ObjectSchema {
  const made = known[io].get(schema) ?? plainObject(schema, io)
  known[io].set(schema, made)
  return made
}

function plainObject (schema: z.ZodType, io: 'input' | 'output'): ObjectSchema {
  const { $defs = {}, ...root } = z.toJSONSchema(schema, { io, override }) as Json & { $defs?: Json }
  if (root.type !== 'object') {
    throw new TypeError(`the ${io} is ${Array.isArray(root.anyOf) ? 'a union' : 'no object'} at its root; make it an object`)
  }
  const { properties = {}, required, ...words } = plain(root, { root, defs: $defs }, 0) as Json
  return {
    type: 'object',
    ...(typeof words.description === 'string' ? { description: words.description } : {}),
    properties: properties as Json,
    ...(Array.isArray(required) && required.length > 0 ? { required: required as readonly string[] } : {})
  }
}

/** A choice that has null, inside of a choice that has null. */
function isNullOrSame ({ anyOf }: Json): boolean {
  const hasNull = (choice: unknown): boolean => Array.isArray(choice) && choice.some(isNull)
  return hasNull(anyOf) && (anyOf as readonly Json[]).some(one => hasNull(one.anyOf))
}

function sameOnce (anyOf: readonly Json[]): readonly Json[] {
  const flat = anyOf.flatMap(one => {
    const { anyOf: inner, ...words } = one
    return Array.isArray(inner) ? (inner as Json[]).map(item => isNull(item) ? item : { ...words, ...item }) : [one]
  })
  return [...flat.filter(one => !isNull(one)), { type: 'null' }]
}

function isNull (one: unknown): boolean {
  return (one as Json).type === 'null'
}

interface Scope {
  readonly root: unknown
  readonly defs: Json
}

function plain (value: unknown, scope: Scope, depth: number): unknown {
  if (Array.isArray(value)) return value.map(item => plain(item, scope, depth))
  if (typeof value !== 'object' || value === null) return value
  const { $ref } = value as Json
  if (typeof $ref === 'string') return depth >= MAX_DEPTH ? {} : plain(targetOf($ref, scope), scope, depth + 4)
  const { anyOf } = value as { readonly anyOf: readonly Json[] }
  if (isNullOrSame(value as Json)) return plain({ ...value, anyOf: sameOnce(anyOf) }, scope, depth)
  // names of properties are no words of the schema
  return Object.fromEntries(Object.entries(value).flatMap(([key, item]) => {
    if (key === 'properties') return [[key, namesOf(item, scope, depth)]]
    return DROPPED.has(key) || isBound(key, item) ? [] : [[key, plain(item, scope, depth)]]
  }))
}

function namesOf (properties: unknown, scope: Scope, depth: number): Json {
  return Object.fromEntries(Object.entries(properties as Json)
    .filter(([, schema]) => (schema as Json).deprecated !== true)
    .map(([name, schema]) => [name, plain(schema, scope, depth + 1)]))
}

function targetOf (ref: string, { root, defs }: Scope): unknown {
  const key = /^#\/\$defs\/(.+)$/.exec(ref)?.[1]
  return key === undefined ? root : defs[key]
}

/** What `int()` says of every number. */
function isBound (key: string, value: unknown): boolean {
  return (key === 'maximum' && value === Number.MAX_SAFE_INTEGER) || (key === 'minimum' && value === Number.MIN_SAFE_INTEGER)
}

/** The words of a query that mean yes or no are booleans to who sends them. */
function override (
  { zodSchema, jsonSchema }: { readonly zodSchema: z.core.$ZodTypes, readonly jsonSchema: z.core.JSONSchema.BaseSchema }
): void {
  const { def } = zodSchema._zod
  if (def.type !== 'pipe' || def.in._zod.def.type !== 'string' || def.out._zod.def.type !== 'boolean') return
  for (const key of Object.keys(jsonSchema)) if (key !== 'description') delete jsonSchema[key]
  jsonSchema.type = 'boolean'
}
