import { core, definePlugin } from 'svc-gateway/plugin'
import { libraryRef } from '../../services/library/ref.js'
import { modelsError } from './errors.js'
import { storeRoutes } from './routes.js'
import { ModelStore } from './store.js'

/**
 * `/api/settings/models/store` and `/api/config/models`: where models live. Apart from the other
 * settings, which must be there also when the model library is not.
 */
export default definePlugin({
  name: 'api-model-store',
  kind: 'routes',
  apiVersion: 1,
  errors: modelsError,
  requires: {
    activity: core.activity,
    config: core.config,
    events: core.events,
    jobs: core.jobs,
    library: libraryRef,
    models: core.models
  },
  register (ctx) {
    const store = new ModelStore(ctx.services)
    for (const route of storeRoutes({ ...ctx.services, store })) ctx.addRoute(route)
    ctx.onStop(() => store.close())
  }
})
