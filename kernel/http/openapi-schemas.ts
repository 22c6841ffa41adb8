import { z } from 'zod'

export type Json = Record<string, unknown>

/**
 * Turns zod schemas into the JSON Schemas of one OpenAPI document. A schema that refers to parts of itself becomes
 * a component, with its references pointing there: inside the document `#` means the document.
 */
export class OpenApiSchemas {
  readonly components: Record<string, Json> = {}

  /** @param name unique in the document, of letters and digits */
  convert (schema: z.ZodType, io: 'input' | 'output', name: string): Json {
    const { $schema: _, $defs, ...root } = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Json & { $defs?: Record<string, Json> }
    const defs = Object.entries($defs ?? {})
    const refers = defs.length > 0 || JSON.stringify(root).includes('"$ref":"#"')
    if (!refers) return root
    for (const [key, definition] of defs) this.components[componentName(name, key)] = relocated(definition, name)
    this.components[name] = relocated(root, name)
    return { $ref: `#/components/schemas/${name}` }
  }
}

function componentName (name: string, key: string): string {
  return `${name}.${key.replace(/[^A-Za-z0-9._-]/g, '_')}`
}

function relocated<T> (value: T, name: string): T {
  if (Array.isArray(value)) return value.map(item => relocated(item as unknown, name)) as T
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) =>
    [key, key === '$ref' && typeof item === 'string' ? refOf(item, name) : relocated(item as unknown, name)])) as T
}

function refOf (ref: string, name: string): string {
  const key = /^#\/\$defs\/(.+)$/.exec(ref)?.[1]
  return `#/components/schemas/${key === undefined ? name : componentName(name, key)}`
}
