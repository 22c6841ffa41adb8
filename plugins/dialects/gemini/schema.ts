import { isObject, malformed, type Json } from '../../v1/over-chat/ref.js'
import { camelCase, member } from './members.js'

const DEEPEST = 100
/** Bounds that Google's JSON writes as text. */
const numbers: ReadonlySet<string> = new Set(['minItems', 'maxItems', 'minLength', 'maxLength', 'minProperties', 'maxProperties'])

/**
 * A `Schema` of the API, which is OpenAPI's of old with its types in capitals, as a JSON schema. Throws `validation.invalid` for
 * one that is nested too deeply. Pure.
 */
export function jsonSchemaOf (schema: unknown, at: string, depth = 0): Json {
  if (!isObject(schema)) throw malformed(at, 'must be an object')
  if (depth > DEEPEST) throw malformed(at, `is nested more than ${DEEPEST} levels deep`)
  const below = (value: unknown, key: string): Json => jsonSchemaOf(value, `${at}.${key}`, depth + 1)
  const made: Record<string, unknown> = {}
  for (const [written, value] of Object.entries(schema)) {
    const key = camelCase(written)
    if (value === null || key === 'propertyOrdering' || key === 'nullable') continue
    if (key === 'type') {
      // says as much as no type
      if (value !== 'TYPE_UNSPECIFIED') made.type = typeof value === 'string' ? value.toLowerCase() : value
    } else if (key === 'example') made.examples = [value]
    else if (key === 'format' && value === 'enum') continue
    else if (key === 'items' || (key === 'additionalProperties' && isObject(value))) made[key] = below(value, key)
    else if ((key === 'anyOf' || key === 'prefixItems') && Array.isArray(value)) made[key] = value.map((one: unknown, i) => below(one, `${key}.${i}`))
    else if (key === 'properties' && isObject(value)) {
      made.properties = Object.fromEntries(ordered(value, member(schema, 'propertyOrdering')).map(([name, one]) => [name, below(one, `properties.${name.slice(0, 64)}`)]))
    } else made[key] = numbers.has(key) && typeof value === 'string' ? Number(value) : value
  }
  return schema.nullable === true ? orNull(made) : made
}

/** Engines write the members of an object in the order of its schema. */
function ordered (properties: Json, order: unknown): ReadonlyArray<readonly [name: string, schema: unknown]> {
  const first = Array.isArray(order) ? [...new Set<unknown>(order)].filter(name => typeof name === 'string' && Object.hasOwn(properties, name)) as string[] : []
  const named = new Set(first)
  return [...first, ...Object.keys(properties).filter(name => !named.has(name))].map(name => [name, properties[name]])
}

/** A schema that takes null as well. */
function orNull (made: Json): Json {
  if (Array.isArray(made.anyOf)) return { ...made, anyOf: [...made.anyOf as unknown[], { type: 'null' }] }
  const values = Array.isArray(made.enum) ? { enum: [...made.enum as unknown[], null] } : {}
  return typeof made.type === 'string' ? { ...made, ...values, type: [made.type, 'null'] } : { ...made, ...values }
}
