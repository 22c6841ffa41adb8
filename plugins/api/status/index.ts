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
      summary: 'What the gateway is, runs and complains about',
      schema: { response: statusSchema },
      tool: {
        name: 'version_info',
        title: 'Version and state of the gateway',
        description: 'Tells the version of the gateway, whether it is well, and what is wrong with its configuration. Call it first when the user says that something does not work.',
        readOnly: true,
        narrow: 'slot_status tells of one slot'
      },
      handler: () => statusReport(ctx.services)
    }))
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/health',
      alsoAt: ['/health', '/v1/health'],
      tag: 'Status',
      summary: 'Whether the gateway is well',
      description: 'Answers 200 also when degraded: it serves.',
      schema: { response: healthSchema },
      handler: () => identity(ctx.services, ctx.services.plugins.standings())
    }))
    for (const url of ['/health/live', '/health/ready']) {
      ctx.addRoute(defineRoute({
        method: 'GET',
        url,
        tag: 'Status',
        summary: url === '/health/live' ? 'Whether the process answers' : 'Whether requests may be sent here',
        description: 'For supervisors and load balancers: 200 with a few bytes, from memory. A gateway that stops answers 503.',
        schema: { response: probeSchema },
        handler: () => ({ status: 'ok' as const })
      }))
    }
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/health/system',
      tag: 'Status',
      summary: 'Whether the parts of the gateway are well: disks, slots, events, audit trail, tool servers',
      description: 'Answers 200 also when degraded.',
      schema: { response: systemHealthSchema },
      tool: {
        name: 'env_report',
        title: 'Health of the parts of the gateway',
        description: 'Tells whether disks, plugins, slots and logs of the gateway are well. Call it when several things fail at once.',
        readOnly: true
      },
      handler: () => systemHealth(ctx.services)
    }))
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/features',
      tag: 'Status',
      summary: 'What is there to be used on this gateway',
      schema: { response: featuresSchema },
      handler: () => {
        const { config, hardware, plugins } = ctx.services
        return featuresOf(plugins.standings(), config.snapshot.svc, hardware.info)
      }
    }))
  }
})
