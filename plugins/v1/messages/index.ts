import { core, definePlugin, defineRoute, type BodyEdits, type JsonBody, type NamedSlotConfig } from 'svc-gateway/plugin'
import { countedElsewhere } from './count.js'
import { messagesDialect } from './dialect.js'
import { messagesOverChat } from './over-chat.js'
import { countAnswerSchema, countBodySchema, messagesAnswerSchema, messagesBodySchema } from './schemas.js'

/**
 * The Messages API, for slots whose engine speaks it and for upstreams that do: bytes pass both ways, streams
 * included. Only failures are the gateway's to word (dialect.ts).
 */
export default definePlugin({
  name: 'v1-messages',
  kind: 'routes',
  apiVersion: 1,
  requires: { dispatch: core.dispatch, slots: core.slots },
  register (ctx) {
    const { dispatch, slots } = ctx.services
    const otherwise = messagesOverChat(dispatch)
    ctx.addRoute(defineRoute({
      method: 'POST',
      url: '/v1/messages',
      tag: 'Messages (Anthropic)',
      surface: 'messages',
      summary: 'A message of the Messages API, streaming or not',
      description: 'With `stream: true` the answer is `text/event-stream`, with the events of the Messages API.',
      schema: { body: messagesBodySchema, response: messagesAnswerSchema },
      answers: [{ type: 'text/event-stream' }],
      example: { model: 'agent', max_tokens: 64, messages: [{ role: 'user', content: 'Say hello' }] },
      bodyKind: 'buffer',
      dialect: messagesDialect,
      handler: call => dispatch.forward(call, {
        surface: 'messages', path: '/messages', dialect: messagesDialect, edit: thinkingDefault, otherwise
      })
    }))
    ctx.addRoute(defineRoute({
      method: 'POST',
      url: '/v1/messages/count_tokens',
      tag: 'Messages (Anthropic)',
      summary: 'Token count of a Messages API request',
      description: 'Where the engine does not count them and has no tokenizer to ask, the number is estimated, and the header `x-svc-estimate` says so.',
      schema: { body: countBodySchema, response: countAnswerSchema },
      example: { model: 'agent', messages: [{ role: 'user', content: 'Say hello' }] },
      bodyKind: 'buffer',
      dialect: messagesDialect,
      handler: call => dispatch.forward(call, {
        surface: 'count-tokens', path: '/messages/count_tokens', dialect: messagesDialect, edit: thinkingDefault,
        otherwise: countedElsewhere(slots)
      })
    }))
  }
})

/** A slot's reasoning default, for requests that do not speak of `thinking`. Pure. */
function thinkingDefault (body: JsonBody, slot: NamedSlotConfig | null): BodyEdits | null {
  if (slot === null || slot.enable_thinking === null || body.has('thinking')) return null
  return { add: { chat_template_kwargs: { enable_thinking: slot.enable_thinking } } }
}
