import { core, definePlugin, defineRoute } from 'svc-gateway/plugin'
import { requestError } from './errors.js'
import { cancelledSchema, requestListSchema, requestParamsSchema } from './schemas.js'

/** `/api/requests`: what runs and waits on `/v1` at this moment, and an end to it. */
export default definePlugin({
  name: 'api-requests',
  kind: 'routes',
  apiVersion: 1,
  errors: requestError,
  requires: { activity: core.activity, requests: core.requests },
  register (ctx) {
    const { activity, requests } = ctx.services
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/requests',
      summary: 'List the /v1 requests in flight and what each is waiting for',
      schema: { response: requestListSchema },
      handler: () => ({ requests: requests.list() })
    }))
    ctx.addRoute(defineRoute({
      method: 'POST',
      url: '/api/requests/:id/cancel',
      summary: 'Cancel a request in flight',
      description: 'Its client gets `request.cancelled`, as an error or as the last event of its stream. Requests that share its call to the engine continue.',
      schema: { params: requestParamsSchema, response: cancelledSchema },
      handler: ({ params: { id }, actor, requestId }) => activity.audited({
        category: 'request', action: 'request.cancel', target: id, actor, request_id: requestId
      }, async note => {
        const before = requests.list().find(request => request.id === id)
        const cancelled = requests.cancel(id)
        if (cancelled === 0) {
          throw requestError('request.not_found', `no request in flight has the id '${id}': it has ended or never existed; GET /api/requests lists them`,
            { details: { id } })
        }
        note({ before })
        return { id, cancelled }
      })
    }))
  }
})
