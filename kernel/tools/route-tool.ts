import type { z } from 'zod'
import {
  handled, isJsonAnswer, isSse, svcError, type AnyRoute, type ErrorCode, type ErrorKind, type RouteTool
} from '../contract/index.js'
import { bodyKindOf, checkPart } from '../http/openapi/route-input.js'
import { ProcessCall } from './process-call.js'
import { shortened } from './short-answer.js'
import { annotationsOf, type Args, type OwnTool } from './own-tool.js'
import { objectSchema } from './tool-schema.js'

const parts = ['params', 'querystring', 'body'] as const
type Part = typeof parts[number]

/** Where an argument goes. */
interface Place {
  readonly part: Part
  readonly key: string
  readonly schema: unknown
  readonly required: boolean
}

interface Inputs {
  readonly params: unknown
  readonly query: unknown
  readonly body: unknown
}

/** Default server of tools that are routes. */
export const ADMIN = 'admin'

/** The tool that a route is. Throws where its schemas cannot be told to clients. */
export function routeTool (route: AnyRoute, tool: RouteTool, owner: string): OwnTool {
  refuseUnfit(route)
  const { schema = {} } = route
  const places = placesOf(route, tool)
  const check = (part: z.ZodType | undefined, value: unknown, code?: ErrorCode | ErrorKind): unknown =>
    part === undefined ? {} : checkPart(part, value, `the call of ${tool.name}`, code)
  const rest = bodyKindOf(route) === 'json' ? 'body' : 'querystring'
  return {
    entry: Object.freeze({
      server: tool.server ?? ADMIN,
      name: tool.name,
      title: tool.title ?? null,
      description: tool.description ?? route.summary,
      inputSchema: inputSchema(places, tool),
      outputSchema: null,
      gated: tool.gated ?? false,
      primary: tool.primary ?? null,
      secrets: tool.secrets ?? [],
      ...tool.unwritten === undefined ? {} : { unwritten: tool.unwritten },
      annotations: annotationsOf(tool),
      owner
    }),
    prepare: args => {
      const given = split(args, places, rest)
      return {
        params: check(schema.params, given.params),
        query: check(schema.querystring, asQuery(given.querystring), route.queryError),
        body: bodyKindOf(route) === 'json' ? check(schema.body, given.body, route.bodyError) : undefined
      } satisfies Inputs
    },
    run: async (prepared, caller, { log, requestId }) => {
      const { params, query, body } = prepared as Inputs
      const call = new ProcessCall({ params, query, body, requestId, caller, log, route })
      const answer: unknown = await route.handler(call as never)
      if (answer === handled || isSse(answer)) {
        caller.signal.throwIfAborted()
        throw svcError('mcp.tool_unfit', `the route ${route.method} ${route.url} writes its own answer, so it cannot be called as a tool`)
      }
      const value: unknown = isJsonAnswer(answer) ? JSON.parse(answer.json.toString()) : answer
      return shortened(tool.short === undefined ? value : tool.short(value as never), tool.narrow)
    }
  }
}

function refuseUnfit (route: AnyRoute): void {
  const kind = bodyKindOf(route)
  if (kind === 'buffer' || kind === 'stream') throw new TypeError(`a route that takes its body as a ${kind} cannot be a tool`)
  if (route.produces !== undefined && !/json/.test(route.produces)) throw new TypeError(`a route that answers ${route.produces} cannot be a tool`)
}

/** Every argument with its schema and its place. Throws when two would have one name. */
function placesOf (route: AnyRoute, { rename = {} }: RouteTool): ReadonlyMap<string, Place> {
  const { schema = {} } = route
  const places = new Map<string, Place>()
  for (const part of parts) {
    const zod = schema[part]
    if (zod === undefined) continue
    const { properties, required = [] } = objectSchema(zod, 'input')
    for (const [key, property] of Object.entries(properties)) {
      const name = rename[key] ?? key
      const before = places.get(name)
      // a body that names again what its address names
      if (before?.part === 'params' && before.key === key) continue
      if (before !== undefined && (before.part === 'params' || part !== 'body')) {
        throw new TypeError(`'${name}' is in its ${wordOf(before.part)} and in its ${wordOf(part)}; give one of them another name in \`rename\``)
      }
      // what may be in the query or in the body is sent in the body
      places.set(name, { part, key, schema: property, required: part === 'params' || required.includes(key) })
    }
  }
  return places
}

function inputSchema (places: ReadonlyMap<string, Place>, { show, brief = false }: RouteTool): OwnTool['entry']['inputSchema'] {
  const odd = show?.find(name => !places.has(name))
  if (odd !== undefined) throw new TypeError(`\`show\` names '${odd}', which is not an argument`)
  const shown = [...places].filter(([name, { required }]) => required || show === undefined || show.includes(name))
  const required = shown.filter(([, place]) => place.required).map(([name]) => name)
  return {
    type: 'object',
    properties: Object.fromEntries(shown.map(([name, { schema }]) => [name, brief ? withoutKeys(schema) : schema])),
    ...(required.length === 0 ? {} : { required })
  }
}

function withoutKeys (schema: unknown): unknown {
  const { description, properties, anyOf } = schema as Readonly<Record<string, unknown>>
  const isTable = (one: unknown): boolean => (one as { readonly properties?: unknown }).properties !== undefined
  const has = properties !== undefined || (Array.isArray(anyOf) && anyOf.some(isTable))
  return has ? { type: 'object', ...(description === undefined ? {} : { description }) } : schema
}

/** What no schema knows goes where the route takes most, and is refused there by name. */
function split (args: Args, places: ReadonlyMap<string, Place>, rest: Part): Readonly<Record<Part, Record<string, unknown>>> {
  const given: Record<Part, Record<string, unknown>> = { params: {}, querystring: {}, body: {} }
  for (const [name, value] of Object.entries(args)) {
    const { part, key } = places.get(name) ?? { part: rest, key: name }
    if (value !== undefined) given[part][key] = value
  }
  return given
}

/** As it comes over HTTP: text, and lists of text. Null is what is not there. */
function asQuery (query: Args): Args {
  const text = (value: unknown): unknown => typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== null)
    .map(([key, value]) => [key, Array.isArray(value) ? value.map(text) : text(value)]))
}

function wordOf (part: Part): string {
  return part === 'params' ? 'path' : part === 'querystring' ? 'query' : 'body'
}
