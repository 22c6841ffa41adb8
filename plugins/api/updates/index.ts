import { core, definePlugin } from 'svc-gateway/plugin'
import { updatesRef } from '../../services/updates/ref.js'
import { applyRoutes } from './apply-routes.js'
import { checkRoutes } from './check-routes.js'
import { channelError } from './errors.js'

/** `/api/updates`: releases of the gateway itself. */
export default definePlugin({
  name: 'api-updates',
  kind: 'routes',
  apiVersion: 1,
  errors: channelError,
  requires: { activity: core.activity, config: core.config, info: core.info, updates: updatesRef },
  register (ctx) {
    for (const route of [...checkRoutes(ctx.services), ...applyRoutes(ctx.services)]) ctx.addRoute(route)
  }
})
