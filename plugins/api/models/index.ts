import { core, definePlugin } from 'svc-gateway/plugin'
import { hubRef } from '../../services/hub/ref.js'
import { libraryRef } from '../../services/library/ref.js'
import { pullsRef } from '../../services/pull/ref.js'
import { modelError } from './errors.js'
import { inspectRoute } from './inspect-route.js'
import { listRoutes } from './list-routes.js'
import { pullRoutes } from './pull-routes.js'
import { registryRoutes } from './registry-routes.js'
import { scanRoutes } from './scan-routes.js'

/** `/api/models`: the registry, the catalogue, files on disk, repositories of the hub. */
export default definePlugin({
  name: 'api-models',
  kind: 'routes',
  apiVersion: 1,
  errors: modelError,
  requires: {
    activity: core.activity,
    clock: core.clock,
    config: core.config,
    dispatch: core.dispatch,
    events: core.events,
    files: core.modelFiles,
    hardware: core.hardware,
    hub: hubRef,
    library: libraryRef,
    models: core.models,
    providers: core.providers,
    pulls: pullsRef,
    slots: core.slots
  },
  register (ctx) {
    const api = ctx.services
    const routes = [...listRoutes(api), ...registryRoutes(api), ...scanRoutes(api), inspectRoute(api), ...pullRoutes(api)]
    for (const route of routes) ctx.addRoute(route)
  }
})
