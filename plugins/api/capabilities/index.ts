import { core, definePlugin } from 'svc-gateway/plugin'
import { capabilityChoicesRef } from '../../services/capabilities/ref.js'
import { libraryRef } from '../../services/library/ref.js'
import { capabilityError } from './errors.js'
import { Overlay } from './overlay.js'
import { overlayRef } from './ref.js'
import { capabilityRoutes } from './routes.js'

/** `/api/capabilities`: the overlay that maps capabilities onto slots. */
export default definePlugin({
  name: 'api-capabilities',
  kind: 'routes',
  apiVersion: 1,
  errors: capabilityError,
  requires: {
    activity: core.activity,
    choices: capabilityChoicesRef,
    config: core.config,
    hardware: core.hardware,
    library: libraryRef,
    models: core.models,
    providers: core.providers,
    slots: core.slots
  },
  provides: [overlayRef],
  register (ctx) {
    const overlay = new Overlay(ctx.services)
    ctx.provide(overlayRef, overlay)
    for (const route of capabilityRoutes({ ...ctx.services, overlay })) ctx.addRoute(route)
  }
})
