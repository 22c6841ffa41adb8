import { core, definePlugin, defineRoute } from 'svc-gateway/plugin'
import { identity, statusReport } from './report.js'
import { healthSchema, statusSchema } from './schemas.js'

/** `/api/status` and `/api/health`: whether the gateway is well, and what it runs (management 20). */
export default definePlugin({
  name: 'api-status',
  kind: 'routes',
  apiVersion: 1,
  requires: {
    clock: core.clock,
    config: core.config,
    dispatch: core.dispatch,
    info: core.info,
    plugins: core.plugins,
    slots: core.slots
  },
  register (ctx) {
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/status',
      summary: 'What the gateway is, runs and complains about',
      schema: { response: statusSchema },
      handler: () => statusReport(ctx.services)
    }))
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/health',
      summary: 'Whether the gateway is well',
      description: 'Answers 200 also when degraded: it serves.',
      schema: { response: healthSchema },
      handler: () => identity(ctx.services)
    }))
  }
})
