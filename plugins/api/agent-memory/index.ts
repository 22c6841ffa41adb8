import { definePlugin } from 'svc-gateway/plugin'
import { agentPersonasRef } from '../../services/agent-personas/ref.js'
import { memoryRef } from '../../services/memory/ref.js'
import { memoryStatsRoute } from './route.js'

/** `/api/agents/{agent}/memory/stats`: what an agent has kept for itself. */
export default definePlugin({
  name: 'api-agent-memory',
  kind: 'routes',
  apiVersion: 1,
  requires: { memory: memoryRef, personas: agentPersonasRef },
  register (ctx) {
    ctx.addRoute(memoryStatsRoute(ctx.services))
  }
})
