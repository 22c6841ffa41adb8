import type { EngineProvider, SurfaceName } from '../../contract/index.js'
import type { Json, OpenApiSchemas } from './openapi-schemas.js'

/** Options of a surface by engine, as JSON Schemas of objects. */
function optionsOf (
  surface: SurfaceName, providers: readonly EngineProvider[], schemas: OpenApiSchemas
): ReadonlyArray<readonly [EngineProvider, Json]> {
  return providers.flatMap(provider => {
    const options = provider.surfaces[surface]?.options
    if (options === undefined) return []
    const name = `${camel(provider.name)}${camel(surface)}Options`
    return [[provider, schemas.convert(options, 'input', name)] as const]
  })
}

/**
 * The body of a route that goes to a surface, with what engines take besides the wire format: none of it is required,
 * since another engine may answer.
 */
export function withEngineOptions (
  body: Json, surface: SurfaceName | undefined, providers: readonly EngineProvider[], schemas: OpenApiSchemas
): Json {
  const options = surface === undefined ? [] : optionsOf(surface, providers, schemas)
  if (options.length === 0) return body
  const properties = new Map<string, Json[]>()
  for (const [{ title }, schema] of options) {
    for (const [key, property] of Object.entries(propertiesOf(schema, schemas))) {
      const about = typeof property.description === 'string' ? `: ${property.description}` : ''
      properties.set(key, [...properties.get(key) ?? [], { ...property, description: `Option of ${title}${about}` }])
    }
  }
  const merged = [...properties].map(([key, known]) => [key, known.length === 1 ? known[0] : { anyOf: known }])
  return { allOf: [body, { type: 'object', properties: Object.fromEntries(merged) as Json }] }
}

function propertiesOf (schema: Json, { components }: OpenApiSchemas): Readonly<Record<string, Json>> {
  const target = typeof schema.$ref === 'string' ? components[schema.$ref.split('/').at(-1)!] : schema
  return (target?.properties ?? {}) as Record<string, Json>
}

function camel (name: string): string {
  return name.split('-').map(word => word.charAt(0).toUpperCase() + word.slice(1)).join('')
}
