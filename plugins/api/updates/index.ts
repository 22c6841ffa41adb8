import { core, definePlugin } from 'svc-gateway/plugin'
import { updatesRef } from '../../services/updates/ref.js'
import { applyRoutes } from './apply-routes.js'
import { checkRoutes } from './check-routes.js'
import { channelError } from './errors.js'
import { slotRoutes } from './slot-routes.js'

/** `/api/updates`: releases of the gateway itself. */
export default definePlugin({
  name: 'api-updates',
  kind: 'routes',
  apiVersion: 1,
  errors: channelError,
  requires: { activity: core.activity, config: core.config, info: core.info, slots: core.slots, updates: updatesRef },
  register (ctx) {
    const { services } = ctx
    for (const route of [...checkRoutes(services), ...applyRoutes(services), ...slotRoutes(services)]) ctx.addRoute(route)
  }
})
