import { defineRoute, type AnyRoute, type ServiceDescriptor } from 'svc-gateway/plugin'
import { servicesError } from './errors.js'
import type { ServiceApi } from './routes.js'
import { advertiseBodySchema, advertisedSchema, mdnsStateSchema } from './schemas.js'

const tag = 'Services'

/** Announcements of services in the local network. */
export function mdnsRoutes (api: ServiceApi): AnyRoute[] {
  const { manager, announcements, activity, config } = api
  const capable = (): ServiceDescriptor[] => manager.list().filter(({ mdns }) => mdns)
  /** What of it other machines cannot reach; empty when they reach all of it. */
  const hidden = (): string => {
    const { server, slots } = config.snapshot.svc
    if (isLoopback(server.host)) return ', but listen only on loopback: set [server] host'
    const engines = isLoopback(slots.publish_host) ? capable().filter(service => manager.slotOf(service) !== null) : []
    return engines.length === 0 ? '' : `, but ${engines.map(({ name }) => name).join(', ')} only on loopback: set [slots] publish_host`
  }
  return [
    defineRoute({
      method: 'GET',
      url: '/api/services/mdns',
      tag,
      summary: 'Services announced in the local network, and those that could be',
      schema: { response: mdnsStateSchema },
      handler: async () => ({
        ...await announcements.state(),
        advertisable: capable().map(service => ({ id: service.id, name: service.name, port: manager.portOf(service) }))
      })
    }),
    defineRoute({
      method: 'POST',
      url: '/api/services/mdns',
      tag,
      summary: 'Start or stop announcing services in the local network',
      description: 'This withdraws only the announcements of services; that of the gateway stays.',
      schema: { body: advertiseBodySchema, response: advertisedSchema },
      bodyError: servicesError.kind('services.advertise_required'),
      example: { advertise: false },
      handler: async ({ body: { advertise }, actor, requestId }) => {
        const row = { category: 'services', action: advertise ? 'services.mdns_advertise' : 'services.mdns_withdraw', target: 'avahi', actor, request_id: requestId }
        const problem = await activity.audited(row, async note => {
          const why = await (advertise ? announcements.advertise(capable()) : announcements.withdraw())
          if (why === null) api.kept.announces = advertise
          note({ after: { ok: why === null }, ...(why === null ? {} : { message: why }) })
          return why
        })
        const message = problem ?? (advertise ? `the services are announced${hidden()}` : 'no service is announced')
        return { ...await announcements.state(), ok: problem === null, message }
      }
    })
  ]
}

/** Pure. */
function isLoopback (host: string): boolean {
  return /^(?:127\.|::1$|localhost$)/.test(host)
}
