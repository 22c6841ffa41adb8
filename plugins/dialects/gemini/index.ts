import { core, definePlugin, defineRoute } from 'svc-gateway/plugin'
import { isTextModel } from '../../v1/models/ref.js'
import { chatOverMessages } from '../../v1/over-messages/ref.js'
import { ask } from './ask.js'
import { geminiDialect } from './dialect.js'
import { geminiError } from './errors.js'
import { modelOf, pageOf } from './models.js'
import {
  askAnswerSchema, askBodySchema, askParamsSchema, askQuerySchema, listQuerySchema, modelListSchema, modelParamsSchema,
  modelSchema
} from './schemas.js'

const shared = { tag: 'Gemini', inference: true, dialect: geminiDialect } as const

/** Gemini's API, as far as its clients ask models by it. */
export default definePlugin({
  name: 'gemini',
  kind: 'routes',
  apiVersion: 1,
  errors: geminiError,
  requires: { clock: core.clock, dispatch: core.dispatch, slots: core.slots },
  register (ctx) {
    const { services } = ctx
    const { dispatch } = services
    const otherwise = chatOverMessages(dispatch, services.clock)
    ctx.addRoute(defineRoute({
      ...shared,
      method: 'POST',
      url: '/v1beta/models/*',
      summary: 'Ask a model through the Gemini API, streaming or not',
      description: 'The answer depends on the method. `streamGenerateContent` answers with events with `?alt=sse`, else with one JSON list.',
      schema: { params: askParamsSchema, querystring: askQuerySchema, body: askBodySchema, response: askAnswerSchema },
      answers: [{ type: 'text/event-stream' }],
      example: { contents: [{ role: 'user', parts: [{ text: 'Say hello' }] }] },
      bodyKind: 'buffer',
      handler: call => ask(services, otherwise, call)
    }))
    ctx.addRoute(defineRoute({
      ...shared,
      method: 'GET',
      url: '/v1beta/models',
      summary: 'Available models, in the format of Google',
      schema: { querystring: listQuerySchema, response: modelListSchema },
      handler: async ({ query, request, signal }) => {
        const rows = await dispatch.models(signal, request.headers['x-svc-via'])
        return pageOf(rows.filter(isTextModel).map(modelOf), query.pageSize, query.pageToken)
      }
    }))
    ctx.addRoute(defineRoute({
      ...shared,
      method: 'GET',
      url: '/v1beta/models/*',
      summary: 'One model of the list; ids may contain slashes',
      schema: { params: modelParamsSchema, response: modelSchema },
      handler: async ({ params, signal }) => modelOf(await dispatch.model(params['*'], signal))
    }))
  }
})
