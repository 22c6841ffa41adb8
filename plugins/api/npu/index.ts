import { core, definePlugin } from 'svc-gateway/plugin'
import { npuRoutes } from './routes.js'

/** `/api/npu`: what the NPU does, and `/api/slots/flm/models`: what it could run. */
export default definePlugin({
  name: 'api-npu',
  kind: 'routes',
  apiVersion: 1,
  requires: {
    events: core.events,
    hardware: core.hardware,
    models: core.models,
    providers: core.providers,
    slots: core.slots
  },
  register (ctx) {
    for (const route of npuRoutes(ctx.services)) ctx.addRoute(route)
  }
})
