import { defineRoute, ENV_NAME_PATTERN, messageOf, type AnyRoute } from 'svc-gateway/plugin'
import { mcpError } from './errors.js'
import { asManifestFailure, planInstallation } from './install.js'
import type { McpApi } from './mcp-api.js'
import {
  configBodySchema, exposureBodySchema, idParamsSchema, installBodySchema, installedSchema, logsQuerySchema, logsSchema,
  oneServerSchema, serversSchema, testedSchema, toolsBodySchema, uninstalledSchema
} from './schemas.js'

const TAG = 'Tool servers'

const serverActions = ['restart', 'start', 'stop'] as const
const actionSummaries = { restart: 'Restart a tool server', start: 'Start a tool server', stop: 'Stop a tool server' } as const

/** Tool servers as rows, and what an operator does with installed ones. */
export function serverRoutes (api: McpApi): AnyRoute[] {
  const { clock, config, servers } = api.services
  return [
    defineRoute({
      method: 'GET',
      url: '/api/mcp/servers',
      tag: TAG,
      summary: 'List tool servers: the gateway\'s own and installed ones',
      schema: { response: serversSchema },
      handler: () => {
        const rows = api.list()
        return { servers: rows, count: rows.length }
      }
    }),
    defineRoute({
      method: 'POST',
      url: '/api/mcp/install',
      tag: TAG,
      summary: 'Install a tool server and list its tools',
      description: 'From an address or spec as for GET /api/mcp/resolve, or from a manifest. Written to mcp-servers/<id>.toml; the server is started in the background to list its tools. Secrets are bound by name: PUT /api/secrets/{name} sets them.',
      schema: { body: installBodySchema, response: installedSchema },
      bodyError: mcpError.kind('mcp.body_invalid'),
      example: { spec: 'npm:@modelcontextprotocol/server-everything' },
      status: 201,
      handler: async call => {
        const installedAt = new Date(clock.now()).toISOString()
        const { id, row, env_missing: missing } = await planInstallation(call.body, servers, installedAt, call.signal)
        return await api.audited(call, 'install', id, async note => {
          await config.change(draft => draft.toolServers.create(id, row)).catch(asManifestFailure)
          const installed = api.row(id)
          note({ after: installed })
          return { installed, env_missing: [...missing] }
        })
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/mcp/:id',
      tag: TAG,
      summary: 'One tool server',
      schema: { params: idParamsSchema, response: oneServerSchema },
      handler: ({ params }) => ({ server: api.row(params.id) })
    }),
    defineRoute({
      method: 'DELETE',
      url: '/api/mcp/:id',
      tag: TAG,
      summary: 'Uninstall a tool server: stop it and remove its file',
      schema: { params: idParamsSchema, response: uninstalledSchema },
      handler: call => {
        const { id } = call.params
        api.requireInstalled(id)
        return api.audited(call, 'uninstall', id, async note => {
          note({ before: api.row(id) })
          await config.change(draft => draft.toolServers.delete(id))
          return { uninstalled: id }
        })
      }
    }),
    defineRoute({
      method: 'PATCH',
      url: '/api/mcp/:id/config',
      tag: TAG,
      summary: 'Change the environment, the secrets, the limits or the state of a tool server',
      description: 'It is restarted if the change affects how it runs.',
      schema: { params: idParamsSchema, body: configBodySchema, response: oneServerSchema },
      bodyError: mcpError.kind('mcp.body_invalid'),
      example: { enabled: false },
      handler: call => {
        const { params: { id }, body } = call
        api.requireInstalled(id)
        const { env, enabled } = body
        if (env !== undefined && !isEnvPatch(env)) {
          throw mcpError('mcp.env_invalid', 'env is an object of variables: names are [A-Za-z_][A-Za-z0-9_]*, values one line of text, or null to remove one', { param: 'env' })
        }
        if (enabled !== undefined && typeof enabled !== 'boolean') throw mcpError('mcp.enabled_invalid', 'enabled is true or false', { param: 'enabled' })
        return api.audited(call, 'config', id, async note => {
          note({ before: api.row(id) })
          await config.change(draft => draft.toolServers.patch(id, body))
          const server = api.row(id)
          note({ after: server })
          return { server }
        })
      }
    }),
    defineRoute({
      method: 'PATCH',
      url: '/api/mcp/:id/tools',
      tag: TAG,
      summary: 'Choose which tools of a server are offered, and which need an approval',
      schema: { params: idParamsSchema, body: toolsBodySchema, response: oneServerSchema },
      bodyError: mcpError.kind('mcp.body_invalid'),
      example: { gated: ['delete_note'] },
      handler: call => {
        const { params: { id }, body } = call
        api.requireInstalled(id)
        return api.audited(call, 'tools', id, async note => {
          await config.change(draft => draft.toolServers.patch(id, { tools: body }))
          note({ after: body })
          return { server: api.row(id) }
        })
      }
    }),
    defineRoute({
      method: 'PATCH',
      url: '/api/mcp/:id/exposure',
      tag: TAG,
      summary: 'Choose where the tools of a server are offered: at its own address, at /mcp/all, to chats',
      description: 'Omitted fields stay. The server is not restarted; running calls continue.',
      schema: { params: idParamsSchema, body: exposureBodySchema, response: oneServerSchema },
      bodyError: mcpError.kind('mcp.body_invalid'),
      example: { all: false },
      handler: call => {
        const { params: { id }, body } = call
        api.requireInstalled(id)
        return api.audited(call, 'exposure', id, async note => {
          note({ before: api.row(id).exposure })
          await config.change(draft => draft.toolServers.patch(id, { exposure: body }))
          const server = api.row(id)
          note({ after: server.exposure })
          return { server }
        })
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/mcp/:id/logs',
      tag: TAG,
      summary: 'Output, events and calls of a tool server',
      schema: { params: idParamsSchema, querystring: logsQuerySchema, response: logsSchema },
      handler: ({ params: { id }, query: { limit } }) => {
        const row = api.row(id)
        const own = row.bundled ? [] : servers.get(id).status.log(limit)
        const name = row.bundled ? row.id.replace(/^svc-/, '') : id
        const calls = api.calls.of(name, limit).map(call => ({ ...call, kind: 'call' as const }))
        const events = [...own, ...calls].sort((a, b) => a.ts < b.ts ? -1 : 1).slice(-limit)
        return { server: row.id, events, count: events.length }
      }
    }),
    defineRoute({
      method: 'POST',
      url: '/api/mcp/:id/test',
      tag: TAG,
      summary: 'Test a tool server by starting or reaching it',
      schema: { params: idParamsSchema, response: testedSchema },
      handler: async ({ params: { id }, signal }) => {
        api.requireInstalled(id)
        const from = clock.monotonic()
        const error = await servers.start(id, signal).then(() => null, messageOf)
        const { tools, protocol } = servers.get(id).status
        const ms = Math.round(clock.monotonic() - from)
        return { ok: error === null, latency_ms: ms, tools: tools?.length ?? null, protocol, error }
      }
    }),
    ...serverActions.map(action => defineRoute({
      method: 'POST',
      url: `/api/mcp/:id/${action}`,
      tag: TAG,
      summary: actionSummaries[action],
      description: 'start and restart answer once it is up, without waiting for a back-off. A stopped server starts with the next call; PATCH /api/mcp/{id}/config disables it.',
      schema: { params: idParamsSchema, response: oneServerSchema },
      handler: call => {
        const { params: { id }, signal } = call
        api.requireInstalled(id)
        return api.audited(call, action, id, async () => {
          await (action === 'stop' ? servers.stop(id) : servers[action](id, signal))
          return { server: api.row(id) }
        })
      }
    }))
  ]
}

function isEnvPatch (value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) &&
    Object.entries(value).every(([name, text]) =>
      ENV_NAME_PATTERN.test(name) && (text === null || (typeof text === 'string' && !/[\r\n\0]/.test(text))))
}
