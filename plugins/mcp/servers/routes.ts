import {
  defineRoute, errorEnvelope, jsonBounds, jsonExcess, TOOL_SERVER_PATTERN, type AnyRoute, type RouteCall, type ToolCatalogue,
  type ToolServerInfo, type WireDialect
} from 'svc-gateway/plugin'
import { z } from 'zod'
import { mcpError } from './errors.js'
import { legacyVersions, refuse, type LegacyLeg } from './legacy-leg.js'
import type { ModernLeg } from './modern-leg.js'
import { INVALID_REQUEST, isObject, PARSE_ERROR, TRANSPORT } from './rpc.js'

const BODY_LIMIT = 4 * 1024 * 1024
/** Those of `/api`, with room for a tool that takes a table of numbers. */
const bounds = { ...jsonBounds, values: 100_000 }

const id = z.union([z.string(), z.number()])
const message = z.looseObject({
  jsonrpc: z.literal('2.0'),
  id: id.optional(),
  method: z.string().optional(),
  params: z.record(z.string(), z.unknown()).optional()
}).meta({ title: 'McpMessage' })
const answer = z.looseObject({ jsonrpc: z.literal('2.0'), id: id.nullish() }).meta({ title: 'McpAnswer' })

/** What is wrong with a message is told as JSON-RPC does, what is wrong with the request as everywhere else. */
const dialect: WireDialect = {
  failureSchema: {
    title: 'McpFailure',
    type: 'object',
    required: ['error'],
    properties: {
      jsonrpc: { const: '2.0' },
      id: { type: ['string', 'number', 'null'] },
      error: {
        type: 'object',
        required: ['code', 'message'],
        properties: { code: { type: ['integer', 'string'] }, message: { type: 'string' } },
        additionalProperties: true
      }
    },
    additionalProperties: true
  },
  failure: errorEnvelope
}

const place = {
  tag: 'Tool servers',
  url: '/mcp/:server',
  // where a client that was set up for a server of older releases looks
  alsoAt: ['/mcp/:server/mcp'],
  dialect,
  schema: {
    params: z.strictObject({ server: z.string().meta({ description: 'Tool server', pattern: TOOL_SERVER_PATTERN.source, examples: ['admin'] }) })
  }
} as const

interface Legs {
  readonly tools: ToolCatalogue
  readonly legacy: LegacyLeg
  readonly modern: ModernLeg
}

/** One address for clients of all revisions. */
export function serverRoutes ({ tools, legacy, modern }: Legs): AnyRoute[] {
  const serverOf = (id: string): ToolServerInfo => {
    const server = tools.server(id)
    if (server?.source?.exposure?.direct === false) {
      throw mcpError('mcp.unknown_server', `tool server '${id}' is not offered at an address of its own`, { details: { server: id } })
    }
    if (server !== null) return server
    throw mcpError('mcp.unknown_server', `there is no tool server '${id}'`, { details: { server: id } })
  }
  return [
    defineRoute({
      ...place,
      method: 'POST',
      summary: 'Send a Model Context Protocol message to a tool server',
      description: 'Revisions 2024-10-07 to 2026-07-28. Answers JSON, or a stream of events for long calls.',
      bodyKind: 'buffer',
      bodyLimit: BODY_LIMIT,
      consumes: 'application/json',
      schema: { ...place.schema, body: message, response: z.union([answer, z.array(answer)]) },
      example: { jsonrpc: '2.0', id: 1, method: 'ping' },
      answers: [{ type: 'text/event-stream' }, { status: 202, type: null, description: 'Notification accepted' }],
      handler: async call => {
        const server = serverOf(call.params.server)
        if (!/^application\/json\s*(;|$)/i.test(call.request.headers['content-type'] ?? '')) {
          return refuse(call, 415, TRANSPORT, 'send messages as application/json')
        }
        const excess = jsonExcess(call.body, bounds)
        if (excess !== null) return refuse(call, 400, INVALID_REQUEST, excess.message)
        let body: unknown
        try {
          body = JSON.parse(call.body.toString('utf8'))
        } catch {
          return refuse(call, 400, PARSE_ERROR, 'the body is not valid JSON')
        }
        const isLegacy = isPlainlyLegacy(call, body) || await modern.isLegacy(call, body)
        return await (isLegacy ? legacy.post(call, server, body) : modern.post(call, server, body))
      }
    }),
    defineRoute({
      ...place,
      method: 'GET',
      summary: 'Stream of changes for a session of the older revisions',
      produces: 'text/event-stream',
      handler: call => legacy.get(call, serverOf(call.params.server))
    }),
    defineRoute({
      ...place,
      method: 'DELETE',
      summary: 'End a session of the older revisions',
      schema: { ...place.schema, response: z.strictObject({ ended: z.literal(true) }) },
      handler: call => {
        serverOf(call.params.server)
        return legacy.delete(call)
      }
    })
  ]
}

/** Without a word of the newer revisions. What has one is judged by the protocol's own package, which takes a while to load. */
function isPlainlyLegacy ({ request: { headers } }: Pick<RouteCall, 'request'>, body: unknown): boolean {
  const version = headers['mcp-protocol-version']
  if (version !== undefined && !(legacyVersions as readonly unknown[]).includes(version)) return false
  return ![body].flat().some(message => {
    const meta = isObject(message) && isObject(message.params) ? message.params._meta : undefined
    return isObject(meta) && Object.keys(meta).some(key => key.startsWith('io.modelcontextprotocol/'))
  })
}
