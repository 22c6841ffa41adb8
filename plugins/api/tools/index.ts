import { core, definePlugin, defineRoute, TOOL_NAME_PATTERN, type RouteCall, type ToolCaller } from 'svc-gateway/plugin'
import { z } from 'zod'
import { toolDocument } from './tool-document.js'

const SERVER = 'admin'
const AGENT = /^[A-Za-z0-9_-]{1,64}$/

const documentSchema = z.looseObject({
  openapi: z.string(),
  servers: z.array(z.strictObject({ url: z.string() })),
  paths: z.record(z.string(), z.unknown())
})

const pendingSchema = z.strictObject({ status: z.literal('pending_approval'), approval_id: z.string() })

/** `/api/tools`: the gateway's tools for clients that speak HTTP with a document, and not the tools' own protocol. */
export default definePlugin({
  name: 'api-tools',
  kind: 'routes',
  apiVersion: 1,
  requires: { tools: core.tools, info: core.info },
  register (ctx) {
    const { tools, info } = ctx.services
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/tools/openapi.json',
      tag: 'Tool servers',
      summary: 'The tools that need no approval, as a small OpenAPI document',
      description: 'For pages that accept an OpenAPI document as a tool server. An agent with a file (`X-svc-Agent`) gets only what the file allows.',
      schema: { response: documentSchema },
      handler: call => {
        const { headers } = call.request
        const url = headers.host === undefined ? info.baseUrl ?? '' : `http://${headers.host}`
        return toolDocument(tools.list(SERVER, { agent: agentOf(call) }), { url, version: info.version })
      }
    }))
    ctx.addRoute(defineRoute({
      method: 'POST',
      url: '/api/tools/:name',
      tag: 'Tool servers',
      summary: 'Call a tool of the gateway',
      description: 'The body holds its arguments. If the tool needs an approval, the answer is 202 and nothing has been done yet.',
      schema: {
        params: z.strictObject({ name: z.string().meta({ description: 'Name of the tool', pattern: TOOL_NAME_PATTERN.source, examples: ['slot_list'] }) }),
        body: z.record(z.string(), z.unknown()),
        response: z.union([pendingSchema, z.record(z.string(), z.unknown())])
      },
      answers: [{ status: 202, description: 'It waits for an approval' }],
      example: {},
      handler: async call => {
        const agent = agentOf(call)
        const { signal, requestId } = call
        const caller: ToolCaller = { actor: `mcp:${agent ?? 'anonymous'}`, agent, signal, requestId }
        const outcome = await tools.call(SERVER, call.params.name, call.body, caller)
        switch (outcome.kind) {
          case 'failed': throw outcome.error
          case 'content': return { ...outcome.content }
          case 'done': return typeof outcome.value === 'object' ? outcome.value : { value: outcome.value }
          case 'pending':
            void call.reply.code(202)
            return { status: 'pending_approval', approval_id: outcome.approvalId }
        }
      }
    }))
  }
})

function agentOf ({ request: { headers } }: Pick<RouteCall, 'request'>): string | null {
  const name = headers['x-svc-agent']
  return typeof name === 'string' && AGENT.test(name) ? name : null
}
