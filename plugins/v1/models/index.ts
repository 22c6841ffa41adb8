import { core, definePlugin, defineRoute } from 'svc-gateway/plugin'
import { filterByOwner } from './owner-filter.js'
import { listQuerySchema, modelListSchema, modelObjectSchema, modelParamsSchema } from './schemas.js'

/** `GET /v1/models` and `GET /v1/models/{id}`. */
export default definePlugin({
  name: 'v1-models',
  kind: 'routes',
  apiVersion: 1,
  requires: { dispatch: core.dispatch },
  register (ctx) {
    const { dispatch } = ctx.services
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/v1/models',
      alsoAt: ['/models'],
      tag: 'Available models',
      summary: 'List the models that can be requested',
      schema: { querystring: listQuerySchema, response: modelListSchema },
      handler: async ({ query, request, signal }) => {
        const models = await dispatch.models(signal, request.headers['x-svc-via'])
        return { object: 'list', data: filterByOwner(models, query.owned_by, request.headers['x-svc-model-filter']) }
      }
    }))
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/v1/models/*',
      alsoAt: ['/models/*'],
      tag: 'Available models',
      summary: 'One model of the list; ids may contain slashes',
      description: 'A name that is not listed is 404: `model.not_loaded` when a request for it would be served anyway, else `model.not_found`.',
      schema: { params: modelParamsSchema, response: modelObjectSchema },
      handler: ({ params, signal }) => dispatch.model(params['*'], signal)
    }))
  }
})
