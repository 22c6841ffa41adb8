import { core, definePlugin } from 'svc-gateway/plugin'
import { agentLifecycleRef, agentsRef } from '../../services/agents/ref.js'
import { lifecycleRoutes } from './lifecycle-routes.js'
import { agentRoutes } from './routes.js'

/** `/api/agents`: programs that people run on a model. */
export default definePlugin({
  name: 'api-agents',
  kind: 'routes',
  apiVersion: 1,
  requires: { activity: core.activity, agents: agentsRef, lifecycle: agentLifecycleRef },
  register (ctx) {
    for (const route of [...agentRoutes(ctx.services), ...lifecycleRoutes(ctx.services)]) ctx.addRoute(route)
  }
})
