import { core, definePlugin, defineRoute } from 'svc-gateway/plugin'
import { fillInMiddle } from '../infill/ref.js'
import { chatOverMessages } from '../over-messages/ref.js'
import { oneCallAlone } from './one-call.js'
import { chatAnswerSchema, chatBodySchema, completionAnswerSchema, completionBodySchema } from './schemas.js'
import { hasSuffix } from './suffix.js'
import { thinkingEdits } from './thinking.js'

const STREAMED = 'With `stream: true` the answer is `text/event-stream`: chunks as `data:` lines, then `data: [DONE]`.'

/** Keys that mean something to the gateway alone: engines must not see them. */
const GATEWAY_KEYS = ['omni', 'memory']

/**
 * Chat and legacy completions. The body is documented by the schema and not validated by it: what the gateway
 * does not use is the engine's to judge, and unknown options pass through.
 */
export default definePlugin({
  name: 'v1-text',
  kind: 'routes',
  apiVersion: 1,
  requires: { clock: core.clock, dispatch: core.dispatch },
  register (ctx) {
    const { clock, dispatch } = ctx.services
    const otherwise = chatOverMessages(dispatch, clock)
    const infill = fillInMiddle(dispatch, clock, 'text')
    let stop = (): void => {}
    ctx.onStart(() => {
      stop = dispatch.intercept('chat', 'tools', oneCallAlone(dispatch))
    })
    ctx.onStop(() => stop())
    ctx.addRoute(defineRoute({
      method: 'POST',
      url: '/v1/chat/completions',
      alsoAt: ['/chat/completions'],
      tag: 'Chat and text',
      surface: 'chat',
      summary: 'Chat completion, streaming or not',
      description: STREAMED,
      schema: { body: chatBodySchema, response: chatAnswerSchema },
      example: { model: 'agent', messages: [{ role: 'user', content: 'Say hello' }] },
      answers: [{ type: 'text/event-stream' }],
      bodyKind: 'buffer',
      handler: call => dispatch.forward(call, {
        surface: 'chat', path: '/chat/completions', drop: GATEWAY_KEYS, edit: thinkingEdits, otherwise
      })
    }))
    ctx.addRoute(defineRoute({
      method: 'POST',
      url: '/v1/completions',
      alsoAt: ['/completions'],
      tag: 'Chat and text',
      surface: 'completions',
      summary: 'Legacy text completion, streaming or not',
      description: STREAMED,
      schema: { body: completionBodySchema, response: completionAnswerSchema },
      example: { model: 'agent', prompt: 'Once upon a time', max_tokens: 32 },
      answers: [{ type: 'text/event-stream' }],
      bodyKind: 'buffer',
      handler: call => hasSuffix(call.body)
        ? dispatch.forward(call, { surface: 'fim', path: '/completions', drop: GATEWAY_KEYS, otherwise: infill })
        : dispatch.forward(call, { surface: 'completions', path: '/completions', drop: GATEWAY_KEYS })
    }))
  }
})
