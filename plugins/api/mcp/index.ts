import { core, definePlugin } from 'svc-gateway/plugin'
import { toolServersRef } from '../../services/tool-servers/ref.js'
import { discoveryRoutes } from './discovery-routes.js'
import { mcpError } from './errors.js'
import { McpApi } from './mcp-api.js'
import { serverRoutes } from './server-routes.js'

/** `/api/mcp`: tool servers, who calls them, and what can be installed. */
export default definePlugin({
  name: 'api-mcp',
  kind: 'routes',
  apiVersion: 1,
  errors: mcpError,
  requires: {
    activity: core.activity, clock: core.clock, config: core.config, events: core.events, info: core.info,
    servers: toolServersRef, tools: core.tools
  },
  register (ctx) {
    const api = new McpApi(ctx.services)
    for (const route of [...discoveryRoutes(api), ...serverRoutes(api)]) ctx.addRoute(route)
  }
})
