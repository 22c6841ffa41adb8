import { core, definePlugin, defineRoute } from 'svc-gateway/plugin'
import { slotUsageRef } from '../slots/ref.js'
import { mainReading } from './hardware-stats.js'
import { metricsRoutes } from './metrics-routes.js'
import { requestStats } from './request-stats.js'
import {
  hardwareStatsSchema, historyQuerySchema, historySchema, powerSchema, requestsQuerySchema, requestsSchema, slotStatsSchema
} from './schemas.js'
import { hostDisplayRef } from './ref.js'
import { readHardware, readSlots, type StatsServices } from './stats-services.js'
import { ShownHost } from './virtualization-host.js'

/** `/api/stats`, `/api/metrics`: what machine, slots, upstreams and clients do. Nothing is measured unasked. */
export default definePlugin({
  name: 'api-stats',
  kind: 'routes',
  apiVersion: 1,
  requires: {
    hardware: core.hardware,
    info: core.info,
    models: core.models,
    requests: core.requests,
    slots: core.slots,
    throughput: core.throughput,
    upstreams: core.upstreams,
    usage: slotUsageRef
  },
  provides: [hostDisplayRef],
  register (ctx) {
    const { hardware, info, models, requests, slots, throughput, upstreams, usage } = ctx.services
    const host = new ShownHost()
    const services: StatsServices = { hardware, host, info, models, requests, slots, throughput, upstreams, usage }
    ctx.provide(hostDisplayRef, host)
    for (const route of metricsRoutes(services)) ctx.addRoute(route)
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/stats/hardware',
      tag: 'Hardware and statistics',
      summary: 'Memory, load and temperatures of the machine, and memory of slots',
      description: 'A reading up to 30 seconds old is returned at once; a new one is taken if it is older than 5 seconds.',
      schema: { response: hardwareStatsSchema },
      tool: {
        name: 'hardware_probe',
        title: 'Memory and load of the machine',
        description: 'Returns memory, load and temperatures of this machine, and the memory of slots. Call it to see whether a model fits.',
        readOnly: true
      },
      handler: () => readHardware(services)
    }))
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/stats/slots',
      tag: 'Hardware and statistics',
      summary: 'Counters and memory of every slot',
      schema: { response: slotStatsSchema },
      handler: ({ signal }) => readSlots(services, signal)
    }))
    for (const url of ['/api/stats/throughput', '/api/stats/throughput/history']) {
      ctx.addRoute(defineRoute({
        method: 'GET',
        url,
        tag: 'Hardware and statistics',
        summary: 'Generated tokens over time',
        schema: { querystring: historyQuerySchema, response: historySchema },
        handler: ({ query }) => throughput.history({ windowS: query.window_s, buckets: query.buckets })
      }))
    }
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/stats/power',
      tag: 'Hardware and statistics',
      summary: 'Power, temperature and clock of the GPU; null without a sensor',
      schema: { response: powerSchema },
      handler: async () => {
        const reading = await hardware.read()
        const gpu = mainReading(hardware.info, reading)
        return {
          gpu_power_w: gpu?.power_w ?? null,
          gpu_temp_c: gpu?.temp_c ?? null,
          gpu_sclk_mhz: gpu?.clock_mhz ?? null,
          cpu_temp_c: reading.cpu_temp_c
        }
      }
    }))
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/stats/requests',
      tag: 'Hardware and statistics',
      summary: 'Recent /v1 requests: number and duration',
      schema: { querystring: requestsQuerySchema, response: requestsSchema },
      handler: ({ query }) => requestStats(query.window_s, requests.summary(query.window_s))
    }))
  }
})
