import {
  defineRoute, serviceVerbs, whileConnected, type ActivityLog, type AnyRoute, type RouteCall, type ServiceVerb
} from 'svc-gateway/plugin'
import type { Announcements } from './announcements.js'
import { servicesError } from './errors.js'
import { healthRows, serviceRows, type RowDeps } from './rows.js'
import {
  actedSchema, actionBodySchema, healthSchema, idParamsSchema, installBodySchema, installStatusSchema, servicesSchema,
  uninstallQuerySchema
} from './schemas.js'

export interface ServiceApi extends RowDeps {
  readonly activity: ActivityLog
  readonly announcements: Announcements
}

const tag = 'Services'

export function serviceRoutes (api: ServiceApi): AnyRoute[] {
  const { manager, announcements } = api
  return [
    defineRoute({
      method: 'GET',
      url: '/api/services',
      tag,
      summary: 'Programs beside the gateway: their states, runtimes and available actions',
      schema: { response: servicesSchema },
      handler: async () => {
        const mdns = announcements.state()
        return { services: await serviceRows(api, mdns), mdns: await mdns }
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/services/health',
      tag,
      summary: 'Whether they answer',
      schema: { response: healthSchema },
      handler: async () => ({ services: await healthRows(api, announcements.hostname) })
    }),
    defineRoute({
      method: 'POST',
      url: '/api/services/:id/action',
      tag,
      summary: 'Start, stop, restart, enable or disable a service',
      description: 'Through systemd if it has the unit; otherwise the gateway runs the service itself. A failed action is also 200, with `ok` false.',
      schema: { params: idParamsSchema, body: actionBodySchema, response: actedSchema },
      bodyError: servicesError.kind('services.action_required'),
      example: { action: 'stop' },
      handler: call => {
        const { params: { id }, body: { action } } = call
        const { unit, verbs } = manager.get(id)
        const verb = serviceVerbs.find(each => each === action)
        if (verb === undefined || !verbs.includes(verb)) {
          throw servicesError('services.action_not_allowed', `'${action}' is not an action of ${id}; it has ${verbs.join(', ')}`,
            { param: 'action', details: { service: id, allowed: [...verbs] } })
        }
        return whileConnected(call, act(api, call, { id, unit, verb }))
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/services/:id/install',
      tag,
      summary: 'Installation of a service, or its progress',
      schema: { params: idParamsSchema, response: installStatusSchema },
      handler: ({ params }) => shown(manager.installer.status(manager.get(params.id)))
    }),
    defineRoute({
      method: 'POST',
      url: '/api/services/:id/install',
      tag,
      summary: 'Install a service on this machine, in its own environment or as a container',
      description: 'Answers at once; GET of the same address shows the progress. An installed service is reinstalled.',
      schema: { params: idParamsSchema, body: installBodySchema, response: installStatusSchema },
      example: {},
      status: 202,
      handler: async call => {
        const { params: { id }, body: { form } } = call
        const service = manager.get(id)
        const row = { category: 'services', action: 'services.install', target: id, actor: call.actor, request_id: call.requestId }
        const { done } = await manager.begin(id, form)
        // how it ends is told by the status, and by the audit
        api.activity.audited(row, async note => { note({ after: await done }) }).catch(() => undefined)
        return shown(manager.installer.status(service))
      }
    }),
    defineRoute({
      method: 'DELETE',
      url: '/api/services/:id/install',
      tag,
      summary: 'Stop and uninstall a service; its data stays unless `data` is true',
      schema: { params: idParamsSchema, querystring: uninstallQuerySchema },
      handler: async call => {
        const { params: { id }, query: { data } } = call
        const row = { category: 'services', action: 'services.uninstall', target: manager.get(id).id, actor: call.actor, request_id: call.requestId }
        await api.activity.audited(row, () => manager.uninstall(id, data === 'true'))
      }
    })
  ]
}

type Caller = Pick<RouteCall, 'actor' | 'requestId'>

async function act (
  { manager, activity }: ServiceApi, { actor, requestId }: Caller,
  { id, unit, verb }: { readonly id: string, readonly unit: string, readonly verb: ServiceVerb }
): Promise<object> {
  const row = { category: 'services', action: `services.${verb}`, target: unit, actor, request_id: requestId }
  const outcome = await activity.audited(row, async note => {
    const done = await manager.act(id, verb)
    note({ after: { ok: done.ok, active: done.active }, message: done.message })
    return done
  })
  return { id, unit, action: verb, ...outcome }
}

function shown<T extends { readonly settings: readonly string[] }> (status: T): Omit<T, 'settings'> & { settings: string[] } {
  return { ...status, settings: [...status.settings] }
}
