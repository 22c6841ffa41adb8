import { z } from 'zod'
import { badRequest, type WireError } from '../wire-error.js'
import type { Gbnf } from './gbnf.js'
import { listOf, literal, MOST_REPETITIONS } from './gbnf.js'
import { otherKeys } from './other-keys.js'
import { integerRange, numberRange } from './number-range.js'

const count = z.int().min(0).optional()

/** The keywords that shape an answer. Others are left to the model, as grammars cannot express them. */
const schemaSchema = z.looseObject({
  type: z.union([z.string(), z.array(z.string()).min(1)]).optional(),
  $ref: z.string().optional(),
  const: z.unknown().optional(),
  enum: z.array(z.unknown()).min(1).max(MOST_REPETITIONS).optional(),
  anyOf: z.array(z.unknown()).min(1).optional(),
  oneOf: z.array(z.unknown()).min(1).optional(),
  allOf: z.array(z.unknown()).min(1).optional(),
  properties: z.record(z.string(), z.unknown()).optional(),
  required: z.array(z.string()).optional(),
  additionalProperties: z.unknown().optional(),
  items: z.unknown().optional(),
  prefixItems: z.array(z.unknown()).optional(),
  minItems: count,
  maxItems: count,
  minLength: count,
  maxLength: count,
  pattern: z.undefined({ error: 'is not supported by the embedded engine; install llama-server, or use an enum' }).optional(),
  format: z.string().optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
  exclusiveMinimum: z.number().optional(),
  exclusiveMaximum: z.number().optional()
})
type Schema = z.output<typeof schemaSchema>

const DEEPEST = 64
/** Characters of a path that an error repeats. */
const LONGEST_PATH = 200
const MOST_MERGES = 500

const formats: Readonly<Record<string, string>> = {
  date: '[0-9]{4} "-" ("0" [1-9] | "1" [0-2]) "-" ("0" [1-9] | [12] [0-9] | "3" [01])',
  time: '([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9] ":" [0-5] [0-9] ("." [0-9]{3})? ("Z" | [-+] ([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9])',
  uuid: '[0-9a-fA-F]{8} "-" [0-9a-fA-F]{4} "-" [0-9a-fA-F]{4} "-" [0-9a-fA-F]{4} "-" [0-9a-fA-F]{12}'
}
const formatOf = (name: string | undefined): string | null =>
  name === 'date-time' ? `${formats.date} "T" ${formats.time}` : name !== undefined && Object.hasOwn(formats, name) ? formats[name]! : null

/** Writes the rules of JSON schemas into one grammar. Properties come in the order in which the schema has them. */
export class SchemaRules {
  readonly #gbnf: Gbnf
  readonly #root: unknown
  readonly #named = new Map<string, string>()
  #merges = 0

  /** @param root the document that `$ref`s point into */
  constructor (gbnf: Gbnf, root: unknown) {
    this.#gbnf = gbnf
    this.#root = root
  }

  /** The grammar of a document, as something that can stand in a rule. Throws a `WireError` for a schema that has none. */
  of (schema: unknown, path = '', depth = 0): string {
    if (depth > DEEPEST) throw badRequest(`The schema is nested deeper than ${DEEPEST} levels`)
    if (schema === true) return this.#gbnf.basic('value')
    const parsed = schemaSchema.safeParse(schema)
    if (!parsed.success) {
      const [issue] = parsed.error.issues
      throw schemaError([path, ...issue!.path.map(String)].join('.'), issue!.message)
    }
    return this.#gbnf.rule(this.#body(parsed.data, path, depth + 1))
  }

  #body (schema: Schema, path: string, depth: number): string {
    const { $ref, allOf, enum: values, type } = schema
    const options = schema.anyOf ?? schema.oneOf
    if ($ref !== undefined) return this.#reference($ref, path, depth)
    if (allOf !== undefined) return this.#body(this.#merged(schema, path), path, depth)
    if (options !== undefined) {
      const keyword = schema.anyOf === undefined ? 'oneOf' : 'anyOf'
      return options.map((option, i) => this.of(option, `${path}.${keyword}.${i}`, depth)).join(' | ')
    }
    if ('const' in schema) return literal(JSON.stringify(schema.const))
    if (values !== undefined) return values.map(value => literal(JSON.stringify(value))).join(' | ')
    if (Array.isArray(type)) return [...new Set(type)].map(one => `(${this.#body({ ...schema, type: one }, path, depth)})`).join(' | ')
    switch (type ?? impliedType(schema)) {
      case 'object': return this.#object(schema, path, depth)
      case 'array': return this.#array(schema, path, depth)
      case 'string': return this.#string(schema, path)
      case 'integer': return bounded(schema) ? this.#range(integerRange(...integerBounds(schema)), path) : this.#gbnf.basic('integer')
      case 'number': return bounded(schema) ? this.#number(schema) : this.#gbnf.basic('number')
      case 'boolean': return this.#gbnf.basic('boolean')
      case 'null': return this.#gbnf.basic('null')
      case undefined: return this.#gbnf.basic('value')
      default: throw schemaError(path, `type '${String(type)}' is unknown`)
    }
  }

  #reference (pointer: string, path: string, depth: number): string {
    const known = this.#named.get(pointer)
    if (known !== undefined) return known
    const name = this.#gbnf.reserve()
    this.#named.set(pointer, name)
    return this.#gbnf.define(name, this.of(this.#target(pointer, path), pointer, depth))
  }

  #target (pointer: string, path: string): unknown {
    const steps = pointer.split('/').slice(1).map(step => decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~'))
    let target: unknown = pointer.startsWith('#') ? this.#root : undefined
    for (const step of steps) {
      target = typeof target === 'object' && target !== null && Object.hasOwn(target, step) ? (target as Record<string, unknown>)[step] : undefined
    }
    if (target === undefined) throw schemaError(path, `$ref '${pointer}' points to nothing in it`)
    return target
  }

  /** All of them at once: properties add up, of anything else the last one counts. */
  #merged ({ allOf, ...rest }: Schema, path: string): Schema {
    if (++this.#merges > MOST_MERGES) throw badRequest(`The schema is too large: it has more than ${MOST_MERGES} allOf to merge`)
    let merged: Schema = {}
    for (const part of [...allOf!, rest]) {
      const schema = typeof part === 'object' && part !== null ? part as Schema : {}
      const { $ref, ...own } = schema
      const target = $ref === undefined ? {} : this.#target($ref, path) as Schema
      const flat = [target, own].map(one => one.allOf === undefined ? one : this.#merged(one, path))
      for (const one of flat) {
        merged = {
          ...merged,
          ...one,
          properties: { ...merged.properties, ...one.properties },
          required: [...merged.required ?? [], ...one.required ?? []]
        }
      }
    }
    if (Object.keys(merged.properties!).length === 0) delete merged.properties
    return schemaSchema.parse(merged)
  }

  #object ({ properties = {}, required = [], additionalProperties }: Schema, path: string, depth: number): string {
    const names = Object.keys(properties)
    const needed = new Set(required)
    const gbnf = this.#gbnf
    gbnf.basic('ws')
    const members = names.map(name => ({
      name: gbnf.rule(`${literal(JSON.stringify(name))} ":" ws ${this.of(properties[name], `${path}.properties.${name}`, depth)}`),
      needed: needed.has(name)
    }))
    for (const name of needed) {
      if (Object.hasOwn(properties, name)) continue
      members.push({ name: gbnf.rule(`${literal(JSON.stringify(name))} ":" ws ${gbnf.basic('value')}`), needed: true })
    }
    let [first, rest] = ['', '']
    if (additionalProperties !== false && (additionalProperties !== undefined || names.length === 0)) {
      const value = additionalProperties === undefined ? gbnf.basic('value') : this.of(additionalProperties, `${path}.additionalProperties`, depth)
      const member = gbnf.rule(`${otherKeys(gbnf, [...names, ...needed])} ":" ws ${value}`)
      first = gbnf.rule(`(${member} ("," ws ${member})*)?`)
      rest = gbnf.rule(`("," ws ${member})*`)
    }
    // from the last one to the first: what may follow a member, and what may come before any other
    for (const member of members.toReversed()) {
      const after = `${member.name} ${rest}`
      first = gbnf.rule(member.needed ? after : `${after} | ${first === '' ? '""' : first}`)
      rest = gbnf.rule(member.needed ? `"," ws ${after}` : `("," ws ${member.name})? ${rest}`)
    }
    return `"{" ws ${first} ws "}"`
  }

  #array ({ items, prefixItems = [], minItems = 0, maxItems }: Schema, path: string, depth: number): string {
    this.#gbnf.basic('ws')
    if (minItems > MOST_REPETITIONS) throw schemaError(path, `minItems must not be above ${MOST_REPETITIONS}`)
    if (prefixItems.length > 0) {
      const fixed = prefixItems.map((item, i) => this.of(item, `${path}.prefixItems.${i}`, depth)).join(' "," ws ')
      return `"[" ws ${fixed} ws "]"`
    }
    const max = maxItems === undefined || maxItems > MOST_REPETITIONS ? null : maxItems
    if (max !== null && max < minItems) throw schemaError(path, 'maxItems is below minItems')
    const item = items === undefined ? this.#gbnf.basic('value') : this.of(items, `${path}.items`, depth)
    return `"[" ws ${listOf(item, minItems, max)} "]"`
  }

  #string ({ minLength = 0, maxLength, format }: Schema, path: string): string {
    const shape = formatOf(format)
    if (shape !== null) return `"\\"" ${shape} "\\""`
    if (minLength === 0 && maxLength === undefined) return this.#gbnf.basic('string')
    if (minLength > MOST_REPETITIONS) throw schemaError(path, `minLength must not be above ${MOST_REPETITIONS}`)
    const max = maxLength === undefined || maxLength > MOST_REPETITIONS ? '' : String(maxLength)
    if (max !== '' && Number(max) < minLength) throw schemaError(path, 'maxLength is below minLength')
    return `"\\"" ${this.#gbnf.basic('char')}{${minLength},${max}} "\\""`
  }

  /** Bounds that no grammar of digits can express are left to the model. */
  #number (schema: Schema): string {
    const range = numberRange(...numberBounds(schema))
    if (range === null) return this.#gbnf.basic('number')
    this.#gbnf.basic('fraction')
    return range
  }

  #range (range: string | null, path: string): string {
    if (range === null) throw schemaError(path, 'no number lies between its bounds')
    return range
  }
}

function schemaError (path: string, what: string): WireError {
  return badRequest(`The JSON schema at '${path.replace(/^\./, '').slice(0, LONGEST_PATH) || 'its root'}': ${what}`)
}

function impliedType (schema: Schema): string | undefined {
  if (schema.properties !== undefined || schema.additionalProperties !== undefined || schema.required !== undefined) return 'object'
  if (schema.items !== undefined || schema.prefixItems !== undefined) return 'array'
  return undefined
}

function bounded (schema: Schema): boolean {
  return [schema.minimum, schema.maximum, schema.exclusiveMinimum, schema.exclusiveMaximum].some(bound => bound !== undefined)
}

/** Lowest and highest integer. */
function integerBounds (schema: Schema): [min: number | null, max: number | null] {
  const { minimum, maximum, exclusiveMinimum: above, exclusiveMaximum: below } = schema
  return [
    highest(minimum === undefined ? null : Math.ceil(minimum), above === undefined ? null : Math.floor(above) + 1),
    lowest(maximum === undefined ? null : Math.floor(maximum), below === undefined ? null : Math.ceil(below) - 1)
  ]
}

/** Lowest and highest number. An exclusive bound counts as inclusive: no grammar of digits can say "just above". */
function numberBounds (schema: Schema): [min: number | null, max: number | null] {
  return [
    highest(schema.minimum ?? null, schema.exclusiveMinimum ?? null),
    lowest(schema.maximum ?? null, schema.exclusiveMaximum ?? null)
  ]
}

function highest (a: number | null, b: number | null): number | null {
  return a === null || b === null ? a ?? b : Math.max(a, b)
}

function lowest (a: number | null, b: number | null): number | null {
  return a === null || b === null ? a ?? b : Math.min(a, b)
}
