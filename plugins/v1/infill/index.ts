import { core, definePlugin, defineRoute } from 'svc-gateway/plugin'
import { fillInMiddle } from './fill-in-middle.js'
import { fimAnswerSchema, fimBodySchema, infillAnswerSchema, infillBodySchema } from './schemas.js'

/** Text between two others: in the words of the engine, and of `/v1/fim/completions`. */
export default definePlugin({
  name: 'v1-infill',
  kind: 'routes',
  apiVersion: 1,
  requires: { clock: core.clock, dispatch: core.dispatch },
  register (ctx) {
    const { clock, dispatch } = ctx.services
    const otherwise = fillInMiddle(dispatch, clock, 'chat')
    const shared = { method: 'POST', tag: 'Chat and text', answers: [{ type: 'text/event-stream' }], bodyKind: 'buffer' } as const
    ctx.addRoute(defineRoute({
      ...shared,
      url: '/v1/fim/completions',
      alsoAt: ['/fim/completions'],
      surface: 'fim',
      summary: 'Fill in the middle: text between two others, streaming or not',
      description: 'On engines that have `/infill`, and at upstreams that know this path.',
      schema: { body: fimBodySchema, response: fimAnswerSchema },
      example: { model: 'agent', prompt: 'def add(a, b):\n', suffix: '\n\nprint(add(1, 2))', max_tokens: 32 },
      handler: call => dispatch.forward(call, { surface: 'fim', path: '/fim/completions', otherwise })
    }))
    ctx.addRoute(defineRoute({
      ...shared,
      url: '/infill',
      alsoAt: ['/v1/infill'],
      surface: 'infill',
      summary: 'Fill in the middle, in llama.cpp\'s format',
      schema: { body: infillBodySchema, response: infillAnswerSchema },
      example: { model: 'agent', input_prefix: 'def add(a, b):\n', input_suffix: '\n\nprint(add(1, 2))', n_predict: 32 },
      handler: call => dispatch.forward(call, { surface: 'infill', path: '/infill' })
    }))
  }
})
