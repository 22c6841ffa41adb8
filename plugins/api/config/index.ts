import { core, definePlugin, defineRoute } from 'svc-gateway/plugin'
import { urlsSchema } from './schemas.js'
import { discoverUrls } from './urls.js'

/** `/api/config`: where a dashboard finds the services around the gateway; public (SPEC.md "Authentication", management 21). */
export default definePlugin({
  name: 'api-config',
  kind: 'routes',
  apiVersion: 1,
  requires: { config: core.config, info: core.info },
  register (ctx) {
    const { config, info } = ctx.services
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/config/urls',
      summary: 'Addresses of the gateway and its companions, as the caller reaches them',
      schema: { response: urlsSchema },
      handler: ({ request }) => discoverUrls({
        headers: request.headers,
        port: info.baseUrl === null ? config.snapshot.svc.server.port : Number(new URL(info.baseUrl).port),
        variable: name => config.secret(name)
      })
    }))
  }
})
