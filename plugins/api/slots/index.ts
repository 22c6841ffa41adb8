import { core, definePlugin } from 'svc-gateway/plugin'
import { configRoutes } from './config-routes.js'
import { slotError, swapError } from './errors.js'
import { insightRoutes } from './insight-routes.js'
import { lifecycleRoutes } from './lifecycle-routes.js'
import { followLog, readTail } from './log/log-reader.js'
import { slotLogsRef, slotUsageRef } from './ref.js'
import { SlotRecords } from './record/slot-records.js'
import { slotMemory, slotMetrics } from './slot-usage.js'
import { streamRoutes } from './stream-routes.js'

/** `/api/slots`: slots as configuration, as engines that run, and as streams. */
export default definePlugin({
  name: 'api-slots',
  kind: 'routes',
  apiVersion: 1,
  errors: [slotError, swapError],
  requires: {
    activity: core.activity,
    clock: core.clock,
    config: core.config,
    configCheck: core.configCheck,
    dispatch: core.dispatch,
    hardware: core.hardware,
    info: core.info,
    models: core.models,
    slots: core.slots,
    upstreams: core.upstreams
  },
  provides: [slotLogsRef, slotUsageRef],
  register (ctx) {
    const api = { ...ctx.services, records: new SlotRecords(ctx.services) }
    ctx.provide(slotUsageRef, { counters: signal => slotMetrics(api, signal), memory: () => slotMemory(api) })
    const { slots } = ctx.services
    ctx.provide(slotLogsRef, {
      tail: (name, options, signal) => readTail(slots, name, options, signal),
      follow: (name, options, signal) => followLog(slots, name, options, signal)
    })
    const routes = [...configRoutes(api), ...lifecycleRoutes(api), ...insightRoutes(api), ...streamRoutes(api)]
    for (const route of routes) ctx.addRoute(route)
  }
})
