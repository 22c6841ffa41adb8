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
