import { core, definePlugin, defineRoute } from 'svc-gateway/plugin'
import { featuresOf } from './features.js'
import { identity, statusReport } from './report.js'
import { featuresSchema, healthSchema, probeSchema, statusSchema, systemHealthSchema } from './schemas.js'
import { systemHealth } from './system-health.js'

/** `/api/status`, `/api/health`, `/api/features`: whether the gateway is well, what it runs and offers. */
export default definePlugin({
  name: 'api-status',
  kind: 'routes',
  apiVersion: 1,
  requires: {
    activity: core.activity,
    config: core.config,
    configCheck: core.configCheck,
    dispatch: core.dispatch,
    hardware: core.hardware,
    info: core.info,
    plugins: core.plugins,
    slots: core.slots
  },
  register (ctx) {
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/status',
      tag: 'Status',
      summary: 'Version, runtimes and problems of the gateway',
      schema: { response: statusSchema },
      tool: {
        name: 'version_info',
        title: 'Version and state of the gateway',
        description: 'Shows the version and health of the gateway, and problems in its configuration. Call it first when the user says that something does not work.',
        readOnly: true,
        narrow: 'slot_status shows one slot'
      },
      handler: () => statusReport(ctx.services)
    }))
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/health',
      alsoAt: ['/health', '/v1/health'],
      tag: 'Status',
      summary: 'Health of the gateway',
      description: 'Answers 200 even if degraded, as it still serves.',
      schema: { response: healthSchema },
      handler: () => identity(ctx.services, ctx.services.plugins.standings())
    }))
    for (const url of ['/health/live', '/health/ready']) {
      ctx.addRoute(defineRoute({
        method: 'GET',
        url,
        tag: 'Status',
        summary: url === '/health/live' ? 'Liveness of the process' : 'Readiness for requests',
        description: 'For supervisors and load balancers: 200 with a few bytes, from memory. A gateway that stops answers 503.',
        schema: { response: probeSchema },
        handler: () => ({ status: 'ok' as const })
      }))
    }
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/health/system',
      tag: 'Status',
      summary: 'Health of the parts of the gateway: disks, slots, events, audit trail, tool servers',
      description: 'Answers 200 even if degraded.',
      schema: { response: systemHealthSchema },
      tool: {
        name: 'env_report',
        title: 'Health of the parts of the gateway',
        description: 'Shows the health of disks, plugins, slots and logs of the gateway. Call it when several things fail at once.',
        readOnly: true
      },
      handler: () => systemHealth(ctx.services)
    }))
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/features',
      tag: 'Status',
      summary: 'Features available on this gateway',
      schema: { response: featuresSchema },
      handler: () => {
        const { config, hardware, plugins } = ctx.services
        return featuresOf(plugins.standings(), config.snapshot.svc, hardware.info)
      }
    }))
  }
})
