import { isObject, malformed, type Json } from '../../v1/over-chat/ref.js'
import { camelCase } from './members.js'

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
    if (value === null || key === 'propertyOrdering' || key === 'nullable' || key === 'example') continue
    if (key === 'type') made.type = typeof value === 'string' ? value.toLowerCase() : value
    else if (key === 'format' && value === 'enum') continue
    else if (key === 'items' || (key === 'additionalProperties' && isObject(value))) made[key] = below(value, key)
    else if ((key === 'anyOf' || key === 'prefixItems') && Array.isArray(value)) made[key] = value.map((one: unknown, i) => below(one, `${key}.${i}`))
    else if (key === 'properties' && isObject(value)) {
      made.properties = Object.fromEntries(Object.entries(value).map(([name, one]) => [name, below(one, `properties.${name.slice(0, 64)}`)]))
    } else made[key] = numbers.has(key) && typeof value === 'string' ? Number(value) : value
  }
  return schema.nullable === true && typeof made.type === 'string' ? { ...made, type: [made.type, 'null'] } : made
}
