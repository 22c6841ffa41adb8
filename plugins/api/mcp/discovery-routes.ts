import { defineRoute, sse, type AnyRoute, type SseEvent } from 'svc-gateway/plugin'
import type { McpApi } from './mcp-api.js'
import {
  catalogQuerySchema, catalogSchema, clientsSchema, manifestSchema, refreshedSchema, resolveQuerySchema
} from './schemas.js'

const TAG = 'Tool servers'

/** What can be installed, and who uses what there is. */
export function discoveryRoutes (api: McpApi): AnyRoute[] {
  const { servers } = api.services
  return [
    defineRoute({
      method: 'GET',
      url: '/api/mcp/clients',
      tag: TAG,
      summary: 'Clients that called tools, from the audit trail',
      schema: { response: clientsSchema },
      handler: () => {
        const clients = api.calls.clients().map(({ id, since, servers: connected }) => ({
          id, name: id, role: roleOf(id), host: '—' as const, since, connected_to: [...connected]
        }))
        return { clients, count: clients.length }
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/mcp/catalog',
      tag: TAG,
      summary: 'Tool servers that can be installed',
      schema: { querystring: catalogQuerySchema, response: catalogSchema },
      handler: async ({ query: { search = '', category } }) => {
        const all = await servers.catalog()
        const word = search.toLowerCase()
        const items = all.filter(item => (category === undefined || item.category === category) &&
          [item.id, item.name, item.description].some(text => text.toLowerCase().includes(word)))
        return { items: [...items], categories: [...new Set(all.map(item => item.category))].sort() }
      }
    }),
    defineRoute({
      method: 'POST',
      url: '/api/mcp/catalog/refresh',
      tag: TAG,
      summary: 'Reload the registry of tool servers',
      description: 'The registry is set by [plugins.config.tool-servers] registry. If it cannot be read, the known entries stay.',
      schema: { response: refreshedSchema },
      handler: call => api.audited(call, 'catalog_refresh', 'catalog', async () => ({ items: await servers.refreshCatalog(call.signal) }))
    }),
    defineRoute({
      method: 'GET',
      url: '/api/mcp/resolve',
      tag: TAG,
      summary: 'Resolve an address or spec without installing it',
      description: 'Specs are npm:, uvx: and oci://. An address is requested once, only if it is public and without following redirects: for a manifest of at most 256 KiB, or to see if it is a server itself.',
      schema: { querystring: resolveQuerySchema, response: manifestSchema },
      handler: async ({ query, signal }) => {
        const manifest = await servers.resolve(query.url, signal)
        return { ...manifest, args: [...manifest.args], env_required: [...manifest.env_required] }
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/mcp/stream',
      tag: TAG,
      summary: 'Stream of tool calls and approvals',
      description: 'Starts with those of the last minute.',
      produces: 'text/event-stream',
      handler: () => sse(signal => frames(api, signal))
    })
  ]
}

/** Approvals go by the last word of their events, as clients of the inbox know them. */
async function* frames ({ calls }: McpApi, signal: AbortSignal): AsyncGenerator<SseEvent> {
  for await (const { type, ts, data } of calls.follow(signal)) {
    const { server, tool, client, gated = true, outcome = data.state } = data
    // approvals tell their actor
    const name = String(client).replace(/^mcp:/, '')
    yield { event: type.replace(/^approval\./, ''), data: { server, tool, client: name, gated, outcome, ts } }
  }
}

/** By its name, which is all that is known of it. */
function roleOf (client: string): 'CLI' | 'IDE' | 'App' {
  if (/cursor|vscode|visual|cline|continue|zed|jetbrains|windsurf/i.test(client)) return 'IDE'
  return /code|aider|hermes|\bpi\b|\bcli\b/i.test(client) ? 'CLI' : 'App'
}
