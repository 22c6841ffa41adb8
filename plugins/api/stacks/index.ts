import { core, definePlugin } from 'svc-gateway/plugin'
import { libraryRef } from '../../services/library/ref.js'
import { stackCatalogRef } from '../../services/stack-catalog/ref.js'
import { overlayRef } from '../capabilities/ref.js'
import { applyRoutes } from './apply-routes.js'
import { catalogRoutes } from './catalog-routes.js'
import { envelopeRoutes } from './envelope-routes.js'
import { stacksError } from './errors.js'
import { StackRunner } from './stack-runner.js'

/** `/api/stacks`: bundles of slots, capabilities and what they refer to. */
export default definePlugin({
  name: 'api-stacks',
  kind: 'routes',
  apiVersion: 1,
  errors: stacksError,
  requires: {
    activity: core.activity,
    clock: core.clock,
    config: core.config,
    events: core.events,
    info: core.info,
    library: libraryRef,
    models: core.models,
    overlay: overlayRef,
    providers: core.providers,
    slots: core.slots,
    stacks: stackCatalogRef
  },
  register (ctx) {
    const runner = new StackRunner(ctx.services, ctx.log)
    ctx.onStart(() => runner.resume())
    ctx.onStop(() => runner.stop())
    const routes = [...catalogRoutes(ctx.services), ...applyRoutes(ctx.services, runner), ...envelopeRoutes(ctx.services)]
    for (const route of routes) ctx.addRoute(route)
  }
})
