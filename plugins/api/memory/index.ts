import { core, definePlugin } from 'svc-gateway/plugin'
import { z } from 'zod'
import { memoryRef } from '../../services/memory/ref.js'
import { bankRoutes } from './bank-routes.js'
import { engineView } from './engine-view.js'
import { graphError, memoryApiError } from './errors.js'
import { graphRoutes } from './graph-routes.js'
import { noteRoutes } from './note-routes.js'
import { passageRoutes } from './passage-routes.js'
import { subgraphRoute } from './subgraph-route.js'
import { successorRoutes } from './successor-routes.js'

const configSchema = z.strictObject({
  systemctl: z.string().min(1).default('systemctl').meta({ description: 'Name or path of systemctl' }),
  unit_folder: z.string().min(1).default('/etc/systemd/system').meta({ description: 'Where the units of systemd are' })
})

/** `/api/memory`: memories by dataset, the engine's own routes for operators, and the wire for clients of Hindsight. */
export default definePlugin({
  name: 'api-memory',
  kind: 'routes',
  apiVersion: 1,
  errors: [memoryApiError, graphError],
  configSchema,
  requires: { activity: core.activity, clock: core.clock, config: core.config, memory: memoryRef },
  register (ctx) {
    const { services, config } = ctx
    const unit = { systemctl: config.systemctl, folder: config.unit_folder }
    const routes = [
      engineView(services.memory), ...noteRoutes(services), ...graphRoutes({ ...services, unit }), subgraphRoute(services.memory),
      ...successorRoutes(services),
      ...bankRoutes(services), ...passageRoutes(services)
    ]
    for (const route of routes) ctx.addRoute(route)
  }
})
