/** How a parameter of a tool is written where all values are plain text: as a string, as a number or word, or as JSON. */
export type ToolTypes = (tool: string, parameter: string) => 'string' | 'scalar' | 'json'

interface Tool { readonly function: { readonly name: string, readonly parameters?: unknown } }

/** A parameter of which nothing is known, or that may be a string, is one. Pure. */
export function toolTypes (tools: readonly Tool[]): ToolTypes {
  const schemas = new Map(tools.map(tool => [tool.function.name, tool.function.parameters]))
  return (tool, parameter) => kindOf(inside(inside(schemas.get(tool), 'properties'), parameter))
}

/** The kind that a schema's own words tell. */
export function kindOf (schema: unknown): ReturnType<ToolTypes> {
  const types = typesOf(schema)
  if (types.length === 0 || types.includes('string')) return 'string'
  return types.some(type => type === 'object' || type === 'array') ? 'json' : 'scalar'
}

function typesOf (schema: unknown, depth = 0): unknown[] {
  if (depth > 3) return []
  const [type, values, options] = [inside(schema, 'type'), inside(schema, 'enum'), inside(schema, 'anyOf') ?? inside(schema, 'oneOf')]
  if (type !== undefined) return Array.isArray(type) ? type : [type]
  if (Array.isArray(values)) return values.map(value => value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value)
  return Array.isArray(options) ? options.flatMap(option => typesOf(option, depth + 1)) : []
}

function inside (value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? (value as Record<string, unknown>)[key] : undefined
}
