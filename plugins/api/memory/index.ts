import { core, definePlugin } from 'svc-gateway/plugin'
import { memoryRef } from '../../services/memory/ref.js'
import { bankRoutes } from './bank-routes.js'
import { engineView } from './engine-view.js'
import { memoryApiError } from './errors.js'
import { noteRoutes } from './note-routes.js'
import { passageRoutes } from './passage-routes.js'

/** `/api/memory`: memories by dataset, the engine's own routes for operators, and the wire for clients of Hindsight. */
export default definePlugin({
  name: 'api-memory',
  kind: 'routes',
  apiVersion: 1,
  errors: memoryApiError,
  requires: { activity: core.activity, clock: core.clock, config: core.config, memory: memoryRef },
  register (ctx) {
    const { services } = ctx
    const routes = [...noteRoutes(services), ...bankRoutes(services), ...passageRoutes(services), engineView(services.memory)]
    for (const route of routes) ctx.addRoute(route)
  }
})
