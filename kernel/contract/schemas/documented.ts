import { z } from 'zod'

type Json = Readonly<Record<string, unknown>>

/** The JSON Schema of what is sent, as metadata for a schema that leaves checking to a service with codes of its own. */
export function documentedShape (schema: z.ZodType): Record<string, unknown> {
  const { $schema: _, ...shape } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Record<string, unknown>
  return shape
}

/** The same for a change of it: nothing is required, and null removes a key of whatever table it stands in. */
export function patchShape (schema: z.ZodType): Record<string, unknown> {
  return asPatch(documentedShape(schema))
}

/**
 * Metadata that is made when it is first read, for `schema.meta(...)`: what only the API document needs does not slow down a
 * start.
 */
export function madeWhenRead (make: () => Record<string, unknown>): Record<string, unknown> {
  let made: Record<string, unknown> | null = null
  const content = (): Record<string, unknown> => made ??= make()
  return new Proxy({}, {
    // `id` names a schema for all documents: zod asks for it when the schema is made
    has: (_, key) => key !== 'id' && key in content(),
    get: (_, key) => Reflect.get(content(), key),
    ownKeys: () => Reflect.ownKeys(content()),
    getOwnPropertyDescriptor: (_, key) => ({ ...Reflect.getOwnPropertyDescriptor(content(), key), configurable: true })
  })
}

function asPatch (shape: Json): Record<string, unknown> {
  const { properties, additionalProperties, required: _, default: __, ...rest } = shape
  const closed = properties === undefined ? additionalProperties : false
  const others = isTable(additionalProperties) ? orNull(additionalProperties) : closed
  return {
    ...rest,
    ...(properties === undefined ? {} : { properties: mapped(properties as Json) }),
    ...(others === undefined ? {} : { additionalProperties: others })
  }
}

function mapped (properties: Json): Record<string, unknown> {
  return Object.fromEntries(Object.entries(properties).map(([key, value]) => [key, orNull(value as Json)]))
}

function orNull (shape: Json): Record<string, unknown> {
  const { description, default: _, ...inner } = shape.type === 'object' ? asPatch(shape) : shape
  return { ...(description === undefined ? {} : { description }), anyOf: [inner, { type: 'null' }] }
}

function isTable (value: unknown): value is Json {
  return typeof value === 'object' && value !== null
}
