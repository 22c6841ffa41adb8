import type { z } from 'zod'
import { KeptJson, type AnyRoute, type ApiDocument, type EngineProvider } from '../../contract/index.js'
import { bodyKindOf } from './route-input.js'
import { groupOf, groupsOf, isInference } from './openapi-groups.js'
import { engineErrorSchema, errorSchema, responsesOf } from './openapi-answers.js'
import { withEngineOptions } from './openapi-options.js'
import { OpenApiSchemas, type Json } from './openapi-schemas.js'

export interface DocumentedRoute {
  readonly plugin: string
  readonly route: AnyRoute
}

/** The document of the routes that there are, made anew only when these are others: it costs a tenth of a second. */
export function apiDocument (
  routes: () => readonly DocumentedRoute[], version: string, providers: () => readonly EngineProvider[] = () => []
): ApiDocument {
  const kept = new KeptJson()
  const json = (): string => {
    const [now, engines] = [routes(), providers()]
    return kept.of([...now.map(({ route }) => route), ...engines], () => openApiDocument(now, version, engines))
  }
  return { json, document: () => JSON.parse(json()) as Json }
}

/** The OpenAPI 3.1 document of all mounted routes. Schemas are the ones that validate. */
export function openApiDocument (
  routes: readonly DocumentedRoute[], version: string, providers: readonly EngineProvider[] = []
): Json {
  const paths: Record<string, Json> = {}
  const schemas = new OpenApiSchemas()
  const ids = new Set<string>()
  for (const { route } of routes) {
    const path = openApiPath(route.url)
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route, operationId(route, ids), schemas, providers) }
  }
  return {
    openapi: '3.1.0',
    info: { title: 'svc', version, description: 'Local inference gateway' },
    tags: groupsOf(routes.map(({ route }) => route)).map(name => ({ name })),
    paths: Object.fromEntries(Object.entries(paths).sort(([a], [b]) => byPath(a, b))),
    components: { schemas: { ...schemas.components, EngineError: engineErrorSchema, Error: errorSchema } }
  }
}

/** What clients of models use comes first. */
function byPath (a: string, b: string): number {
  const order = Number(isInference({ url: b })) - Number(isInference({ url: a }))
  if (order !== 0) return order
  return a < b ? -1 : 1
}

/** `/a/:id` and `/a/*` as OpenAPI spells them. */
export function openApiPath (url: string): string {
  return url.replace(/:([A-Za-z_]\w*)/g, '{$1}').replace(/\*$/, '{path}')
}

function operation (route: AnyRoute, id: string, schemas: OpenApiSchemas, providers: readonly EngineProvider[]): Json {
  const { schema = {} } = route
  return {
    tags: [groupOf(route)],
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    operationId: id,
    parameters: [...pathParameters(route, id, schemas), ...parameters(schema.querystring, 'query', id, schemas)],
    ...requestBody(route, id, schemas, providers),
    responses: responsesOf(route, schema.response === undefined ? null : schemas.convert(schema.response, 'output', `${id}Answer`))
  }
}

function capital (word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1)
}

/** `GET /api/slots/:name` as `getApiSlotsByName`; numbered where two would be called the same. */
function operationId ({ method, url }: AnyRoute, taken: Set<string>): string {
  const words = openApiPath(url).replaceAll('{', 'by-').split(/[^A-Za-z0-9]+/).filter(word => word !== '')
  const base = method.toLowerCase() + words.map(capital).join('')
  let id = base
  for (let n = 2; taken.has(id); n++) id = `${base}${n}`
  taken.add(id)
  return id
}

function requestBody (route: AnyRoute, id: string, schemas: OpenApiSchemas, providers: readonly EngineProvider[]): Json {
  const kind = bodyKindOf(route)
  const body = route.schema?.body
  if (kind === 'none' && body === undefined) return {}
  const schema = body === undefined ? { type: 'object' } : schemas.convert(body, 'input', `${id}Body`)
  const type = route.consumes ?? (kind === 'stream' ? 'multipart/form-data' : 'application/json')
  // an empty body counts as an empty object
  const asked = (kind === 'stream' || kind === 'buffer') && body?.safeParse(undefined).success !== true
  const required = asked || body?.safeParse({}).success === false || schemas.needs(schema)
  const example = route.example === undefined ? {} : { example: route.example }
  const whole = withEngineOptions(schema, route.surface, providers, schemas)
  const named = '$ref' in whole ? whole : { title: `${capital(id)}Body`, ...whole }
  return { requestBody: { required, content: { [type]: { schema: named, ...example } } } }
}

/** Every placeholder of the path is a parameter, described or not. */
function pathParameters ({ url, schema }: AnyRoute, id: string, schemas: OpenApiSchemas): Json[] {
  const described = new Map(parameters(schema?.params, 'path', id, schemas).map(parameter => [parameter.name, parameter]))
  const names = [...openApiPath(url).matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)
  return names.map(name => described.get(name) ?? { name, in: 'path', required: true, schema: { type: 'string' } })
}

function parameters (schema: z.ZodType | undefined, where: 'path' | 'query', id: string, schemas: OpenApiSchemas): Json[] {
  if (schema === undefined) return []
  const name = `${id}${where === 'path' ? 'Path' : 'Query'}`
  const converted = schemas.convert(schema, 'input', name)
  const object = (schemas.components[name] ?? converted) as { properties?: Record<string, Json>, required?: string[] }
  const { properties = {}, required = [] } = object
  return Object.entries(properties).map(([name, property]) => ({
    name: where === 'path' && name === '*' ? 'path' : name,
    in: where,
    required: where === 'path' || required.includes(name),
    ...(typeof property.description === 'string' ? { description: property.description } : {}),
    schema: property
  }))
}
