import { core, definePlugin } from 'svc-gateway/plugin'
import { upstreamError, providerError } from './errors.js'
import { providerRoutes } from './provider-routes.js'
import { UpstreamApi } from './upstream-api.js'
import { upstreamRoutes } from './upstream-routes.js'

/** `/api/upstreams` and `/api/providers`: remote providers as rows, how they are, and their keys. */
export default definePlugin({
  name: 'api-upstreams',
  kind: 'routes',
  apiVersion: 1,
  errors: [upstreamError, providerError],
  requires: { activity: core.activity, config: core.config, info: core.info, upstreams: core.upstreams },
  register (ctx) {
    const api = new UpstreamApi(ctx.services)
    for (const route of [...upstreamRoutes(api), ...providerRoutes(api)]) ctx.addRoute(route)
  }
})
