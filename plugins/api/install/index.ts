import { core, definePlugin } from 'svc-gateway/plugin'
import { z } from 'zod'
import { agentLifecycleRef, agentOffersRef, agentsRef } from '../../services/agents/ref.js'
import { libraryRef } from '../../services/library/ref.js'
import { pullsRef } from '../../services/pull/ref.js'
import { overlayRef } from '../capabilities/ref.js'
import { companionsRef } from '../services/ref.js'
import { applyRoutes } from './apply-routes.js'
import { installError } from './errors.js'
import { Installer } from './installer.js'
import { ModelFinder } from './model-finder.js'
import { PendingSlots } from './pending-slots.js'
import { slotModelRoute } from './slot-model-route.js'
import { stateRoutes } from './state-routes.js'
import { unitRoutes } from './unit-routes.js'

const loadSchema = z.boolean().default(true)
  .meta({ description: 'Load a slot when its model is downloaded; off leaves that to its first request' })

/** `/api/install`: from a bare machine to slots that serve. */
export default definePlugin({
  name: 'api-install',
  kind: 'routes',
  apiVersion: 1,
  errors: installError,
  requires: {
    activity: core.activity,
    agents: agentsRef,
    agentLifecycle: agentLifecycleRef,
    agentOffers: agentOffersRef,
    companions: companionsRef,
    config: core.config,
    events: core.events,
    hardware: core.hardware,
    library: libraryRef,
    models: core.models,
    overlay: overlayRef,
    providers: core.providers,
    pulls: pullsRef,
    slots: core.slots
  },
  configSchema: z.strictObject({ load_after_pull: loadSchema }),
  register (ctx) {
    const { config } = ctx.services
    const finder = new ModelFinder(ctx.services)
    const pending = new PendingSlots({
      ...ctx.services,
      log: ctx.log,
      loads: () => ctx.config.load_after_pull && config.snapshot.svc.slots.autostart,
      find: async id => (await finder.find([id])).get(id) ?? null
    })
    const installer = new Installer({ ...ctx.services, finder, pending })
    const api = { ...ctx.services, finder, installer }
    for (const route of [...stateRoutes(api), ...applyRoutes(api), slotModelRoute(api), ...unitRoutes(api)]) ctx.addRoute(route)
    ctx.addSetting({ key: 'load_after_pull', schema: loadSchema, description: 'Load a slot when its model is downloaded', apply: 'gateway-restart' })
    ctx.onStart(() => pending.start())
    ctx.onStop(() => pending.close())
  }
})
