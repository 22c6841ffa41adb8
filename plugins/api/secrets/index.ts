import { core, definePlugin } from 'svc-gateway/plugin'
import { secretError } from './errors.js'
import { secretRoutes } from './routes.js'

/** `/api/secrets`: the operator's keys, written and never read back. */
export default definePlugin({
  name: 'api-secrets',
  kind: 'routes',
  apiVersion: 1,
  errors: secretError,
  requires: { activity: core.activity, config: core.config, events: core.events, upstreams: core.upstreams },
  register (ctx) {
    for (const route of secretRoutes(ctx.services)) ctx.addRoute(route)
  }
})
