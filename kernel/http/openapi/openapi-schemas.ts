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
    const converted = z.toJSONSchema(schema, { io, unrepresentable: 'any', override })
    const { $schema: _, $defs, ...root } = converted as Json & { $defs?: Record<string, Json> }
    const defs = Object.entries($defs ?? {})
    const refers = defs.length > 0 || JSON.stringify(root).includes('"$ref":"#"')
    if (!refers) return this.#named(root, io)
    for (const [key, definition] of defs) this.components[componentName(name, key)] = relocated(definition, name)
    this.components[name] = { title: name, ...relocated(root, name) }
    return { $ref: `#/components/schemas/${name}` }
  }

  /** Whether an object of the schema must have some key. */
  needs (schema: Json): boolean {
    const target = typeof schema.$ref === 'string' ? this.components[schema.$ref.split('/').at(-1)!] : schema
    return Array.isArray(target?.required) && target.required.length > 0
  }

  /**
   * Every part that has a name, which is its title, as a component of that name: the same thing is one type in the clients
   * that are generated. What is sent may differ from what is answered by the keys that have defaults.
   */
  #named<T> (value: T, io: 'input' | 'output'): T | Json {
    if (Array.isArray(value)) return value.map(item => this.#named(item as unknown, io)) as T
    if (typeof value !== 'object' || value === null) return value
    const { title } = value as Json
    const inner = Object.fromEntries(Object.entries(value).map(([key, item]) => [key, this.#named(item as unknown, io)])) as Json
    if (typeof title !== 'string' || !/^[A-Z][A-Za-z0-9]*$/.test(title)) return inner as T
    // clients name a type after its title, so no two components share one
    const entitled = (name: string): Json => ({ ...inner, title: name })
    const isFree = (name: string): boolean =>
      this.components[name] === undefined || JSON.stringify(this.components[name]) === JSON.stringify(entitled(name))
    const name = [title, `${title}${io === 'input' ? 'Input' : 'Output'}`].find(isFree)
    if (name === undefined) return inner as T
    this.components[name] = entitled(name)
    return { $ref: `#/components/schemas/${name}` }
  }
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
