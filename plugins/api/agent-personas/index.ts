import { core, definePlugin } from 'svc-gateway/plugin'
import { agentPersonasRef } from '../../services/agent-personas/ref.js'
import { personaRoutes } from './routes.js'

/** `/api/agents/{agent}/personas`: who an agent is. */
export default definePlugin({
  name: 'api-agent-personas',
  kind: 'routes',
  apiVersion: 1,
  requires: { activity: core.activity, personas: agentPersonasRef, tools: core.tools },
  register (ctx) {
    for (const route of personaRoutes(ctx.services)) ctx.addRoute(route)
  }
})
