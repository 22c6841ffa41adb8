import { core, definePlugin, defineRoute, svcError } from 'svc-gateway/plugin'
import { filterByOwner } from './owner-filter.js'
import { listQuerySchema, modelListSchema, modelObjectSchema, modelParamsSchema } from './schemas.js'

/** `GET /v1/models` and `GET /v1/models/{id}` (SPEC.md "Model object"). */
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
      summary: 'List the models that can be asked for',
      schema: { querystring: listQuerySchema, response: modelListSchema },
      handler: async ({ query, request, signal }) => {
        const models = await dispatch.models(signal, request.headers['x-svc-via'])
        return { object: 'list', data: filterByOwner(models, query.owned_by, request.headers['x-svc-model-filter']) }
      }
    }))
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/v1/models/*',
      summary: 'One model of the list; ids may contain slashes',
      schema: { params: modelParamsSchema, response: modelObjectSchema },
      handler: async ({ params, signal }) => {
        const id = params['*']
        const model = await dispatch.model(id, signal)
        if (model === undefined) {
          throw svcError('model.not_found', `no model has the id '${id}'; GET /v1/models lists what there is`, { param: 'model', details: { model: id } })
        }
        return model
      }
    }))
  }
})
