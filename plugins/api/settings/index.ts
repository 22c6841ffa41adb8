import { core, definePlugin } from 'svc-gateway/plugin'
import { settingsRoutes } from './routes.js'

/** `/api/settings`: svc.toml over HTTP. */
export default definePlugin({
  name: 'api-settings',
  kind: 'routes',
  apiVersion: 1,
  requires: {
    activity: core.activity, config: core.config, events: core.events, info: core.info, models: core.models,
    plugins: core.plugins, slots: core.slots
  },
  register (ctx) {
    for (const route of settingsRoutes(ctx.services)) ctx.addRoute(route)
  }
})
