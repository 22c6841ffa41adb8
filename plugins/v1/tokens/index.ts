import { core, definePlugin, defineRoute } from 'svc-gateway/plugin'
import { detokenizeAnswerSchema, detokenizeBodySchema, tokenizeAnswerSchema, tokenizeBodySchema } from './schemas.js'

/** Text into the tokens of a model, and back. */
export default definePlugin({
  name: 'v1-tokens',
  kind: 'routes',
  apiVersion: 1,
  requires: { dispatch: core.dispatch },
  register (ctx) {
    const { dispatch } = ctx.services
    ctx.addRoute(defineRoute({
      method: 'POST',
      url: '/v1/tokenize',
      alsoAt: ['/tokenize'],
      tag: 'Chat and text',
      surface: 'tokenize',
      summary: 'A text or a chat as tokens of a model',
      schema: { body: tokenizeBodySchema, response: tokenizeAnswerSchema },
      example: { model: 'agent', prompt: 'Hello' },
      bodyKind: 'buffer',
      handler: call => dispatch.forward(call, { surface: 'tokenize', path: '/tokenize' })
    }))
    ctx.addRoute(defineRoute({
      method: 'POST',
      url: '/v1/detokenize',
      alsoAt: ['/detokenize'],
      tag: 'Chat and text',
      surface: 'detokenize',
      summary: 'Tokens of a model as text',
      schema: { body: detokenizeBodySchema, response: detokenizeAnswerSchema },
      example: { model: 'agent', tokens: [1, 2, 3] },
      bodyKind: 'buffer',
      handler: call => dispatch.forward(call, { surface: 'detokenize', path: '/detokenize' })
    }))
  }
})
