import { core, definePlugin } from 'svc-gateway/plugin'
import { activityError } from './errors.js'
import { activityRoutes } from './routes.js'

/** `/api/activity`: the durable trail of who did what, and what happened. */
export default definePlugin({
  name: 'api-activity',
  kind: 'routes',
  apiVersion: 1,
  errors: activityError,
  requires: { activity: core.activity, config: core.config },
  register (ctx) {
    for (const route of activityRoutes(ctx.services)) ctx.addRoute(route)
  }
})
