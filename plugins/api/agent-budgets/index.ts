import { core, definePlugin } from 'svc-gateway/plugin'
import { agentBudgetsRef } from '../../services/agent-budgets/ref.js'
import { agentPersonasRef } from '../../services/agent-personas/ref.js'
import { budgetRoutes } from './routes.js'

/** `/api/agents/{agent}/personas/{persona}/budget` and `/api/agents/prices`: what agents may spend. */
export default definePlugin({
  name: 'api-agent-budgets',
  kind: 'routes',
  apiVersion: 1,
  requires: { activity: core.activity, budgets: agentBudgetsRef, personas: agentPersonasRef },
  register (ctx) {
    for (const route of budgetRoutes(ctx.services)) ctx.addRoute(route)
  }
})
