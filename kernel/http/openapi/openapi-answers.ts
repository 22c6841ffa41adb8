import type { AnyRoute } from '../../contract/index.js'
import { isInference } from './openapi-groups.js'
import type { Json } from './openapi-schemas.js'

/** What the gateway itself refuses with. */
export const errorSchema: Json = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message', 'type', 'param', 'details', 'request_id'],
      properties: {
        code: { type: 'string', description: 'Stable, dotted' },
        message: { type: 'string' },
        type: { type: 'string' },
        param: { type: ['string', 'null'] },
        details: { type: 'object', additionalProperties: true },
        request_id: { type: 'string' }
      }
    }
  }
}

/** What engines and upstreams refuse with: their words pass as they are, and they agree on little. */
export const engineErrorSchema: Json = {
  type: 'object',
  description: 'An error of the gateway, or the unchanged error of the engine',
  properties: {
    error: {
      type: 'object',
      properties: {
        code: { type: ['string', 'integer', 'null'] },
        message: { type: 'string' },
        type: { type: ['string', 'null'] },
        param: { type: ['string', 'null'] },
        details: { type: 'object', additionalProperties: true },
        request_id: { type: 'string' }
      },
      additionalProperties: true
    }
  },
  additionalProperties: true
}

/** Every status that a route may answer with, and what comes with it. */
export function responsesOf (route: AnyRoute, answer: Json | null): Json {
  const { produces, answers = [] } = route
  const success = String(route.status ?? (answer === null && produces === undefined ? 204 : 200))
  const first = answer === null
    ? produces === undefined ? null : { [produces]: contentOf(produces) }
    : { [produces ?? 'application/json']: { schema: answer } }
  const responses: Record<string, Json> = { [success]: { description: 'Success', ...(first === null ? {} : { content: first }) } }
  for (const { status, type, description } of answers) {
    const key = String(status ?? success)
    const known = responses[key] ?? { description: description ?? 'Success' }
    const content = { ...known.content as Json | undefined, ...contentFor(type, status, answer) }
    responses[key] = { ...known, ...(Object.keys(content).length === 0 ? {} : { content }) }
  }
  return { ...responses, default: { description: 'Error', content: { 'application/json': { schema: errorOf(route) }, ...otherErrorsOf(route) } } }
}

function contentFor (type: string | null | undefined, status: number | string | undefined, answer: Json | null): Json {
  if (type === null) return {}
  if (type !== undefined) return { [type]: contentOf(type) }
  // an answer without a body, or the usual one under another status
  return status === 204 || status === 304 || status === 302 || answer === null ? {} : { 'application/json': { schema: answer } }
}

/** Bytes need no schema in OpenAPI 3.1; text is a string. That of a stream would be the one of each event, and events differ. */
function contentOf (type: string): Json {
  if (type === 'text/event-stream') return { schema: { description: 'Server-sent events' } }
  if (type === 'application/x-ndjson') return { schema: { description: 'JSON values, one per line' } }
  return type.startsWith('text/') ? { schema: { type: 'string' } } : {}
}

/** Engines and upstreams refuse in whatever they like where their words pass. */
function otherErrorsOf (route: AnyRoute): Json {
  return isForwarded(route) ? { 'text/*': { schema: { type: 'string' } } } : {}
}

function isForwarded (route: AnyRoute): boolean {
  return isInference(route) && route.method !== 'GET'
}

function errorOf (route: AnyRoute): Json {
  const { dialect } = route
  if (dialect?.failureSchema !== undefined) return { ...dialect.failureSchema }
  return { $ref: `#/components/schemas/${isForwarded(route) ? 'EngineError' : 'Error'}` }
}
