import { core, definePlugin } from 'svc-gateway/plugin'
import { overlayRef } from '../capabilities/ref.js'
import { backendError } from './errors.js'
import { backendRoutes } from './routes.js'

/** `/api/backends`: the hardware that engines run on, and what runs there. */
export default definePlugin({
  name: 'api-backends',
  kind: 'routes',
  apiVersion: 1,
  errors: backendError,
  requires: {
    activity: core.activity,
    clock: core.clock,
    config: core.config,
    hardware: core.hardware,
    models: core.models,
    overlay: overlayRef,
    providers: core.providers,
    slots: core.slots
  },
  register (ctx) {
    for (const route of backendRoutes(ctx.services)) ctx.addRoute(route)
  }
})
