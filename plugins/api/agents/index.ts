import { definePlugin } from 'svc-gateway/plugin'
import { agentsRef } from '../../services/agents/ref.js'
import { agentRoutes } from './routes.js'

/** `/api/agents`: programs that people run on a model. */
export default definePlugin({
  name: 'api-agents',
  kind: 'routes',
  apiVersion: 1,
  requires: { agents: agentsRef },
  register (ctx) {
    for (const route of agentRoutes(ctx.services)) ctx.addRoute(route)
  }
})
