import { core, definePlugin } from 'svc-gateway/plugin'
import { catalogRoutes } from './catalog-routes.js'
import { envelopeRoutes } from './envelope-routes.js'
import { profilesError } from './errors.js'

/** `/api/profiles`: the catalogue of profiles and their envelopes. */
export default definePlugin({
  name: 'api-profiles',
  kind: 'routes',
  apiVersion: 1,
  errors: profilesError,
  requires: { activity: core.activity, clock: core.clock, config: core.config, info: core.info, slots: core.slots },
  register (ctx) {
    for (const route of [...catalogRoutes(ctx.services), ...envelopeRoutes(ctx.services)]) ctx.addRoute(route)
  }
})
