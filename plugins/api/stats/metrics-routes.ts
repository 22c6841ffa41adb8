import { defineRoute, handled, type AnyRoute } from 'svc-gateway/plugin'
import { metricsText } from './prometheus.js'
import { requestStats } from './request-stats.js'
import { metricsSchema } from './schemas.js'
import { readHardware, readSlots, type StatsServices } from './stats-services.js'

const REQUEST_WINDOW_S = 60

/** `/api/metrics`: everything at once, for programs that watch the gateway. */
export function metricsRoutes (services: StatsServices): AnyRoute[] {
  const { hardware, info, requests, slots, throughput, upstreams } = services
  return [
    defineRoute({
      method: 'GET',
      url: '/api/metrics',
      tag: 'Hardware and statistics',
      summary: 'Slots, machine and requests in one answer',
      schema: { response: metricsSchema },
      handler: async ({ signal }) => {
        const memory = services.usage.memory()
        const [perSlot, machine] = await Promise.all([readSlots(services, signal, memory), readHardware(services, memory)])
        return {
          slots: perSlot,
          hardware: machine,
          dispatcher: { in_flight: requests.list().length, ...requestStats(REQUEST_WINDOW_S, requests.summary(REQUEST_WINDOW_S)) }
        }
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/metrics/prometheus',
      tag: 'Hardware and statistics',
      summary: 'The same in the text format of Prometheus',
      produces: 'text/plain',
      handler: async ({ reply, requestId }) => {
        const counters = throughput.upstreams()
        const text = metricsText({
          version: info.version,
          slots: slots.names().map(name => ({ status: slots.status(name), counters: slots.metrics(name) })),
          upstreams: upstreams.list()
            .map(({ config: { name }, circuit }) => ({ name, circuit, counters: counters[name] ?? null })),
          requestsInFlight: requests.list().length,
          reading: await hardware.read()
        })
        void reply.headers({ 'content-type': 'text/plain; version=0.0.4; charset=utf-8', 'x-request-id': requestId }).send(text)
        return handled
      }
    })
  ]
}
