import { core, definePlugin, defineRoute, type BodyEdits, type JsonBody, type NamedSlotConfig } from 'svc-gateway/plugin'
import { z } from 'zod'
import { responsesDialect } from './dialect.js'
import { responsesOverChat } from './over-chat.js'

const responsesBodySchema = z.looseObject({
  model: z.string().meta({ description: 'Slot name, model id, `svc/<role>` or upstream model', minLength: 1 }),
  input: z.union([z.string(), z.array(z.looseObject({}))]),
  instructions: z.string().nullish(),
  stream: z.boolean().nullish()
})

/** What engines answer; it is documented and passed on as it comes. */
const responsesAnswerSchema = z.looseObject({
  id: z.string(),
  object: z.literal('response'),
  created_at: z.number().meta({ description: 'Epoch seconds' }),
  model: z.string(),
  status: z.string(),
  output: z.array(z.looseObject({ type: z.string() })),
  usage: z.looseObject({ input_tokens: z.int(), output_tokens: z.int(), total_tokens: z.int() }).nullish()
})

/**
 * The Responses API. Where the slot's engine or the upstream speaks it, bytes pass both ways, streams included; everything
 * else is asked for a chat completion (over-chat.ts).
 */
export default definePlugin({
  name: 'v1-responses',
  kind: 'routes',
  apiVersion: 1,
  requires: { clock: core.clock, dispatch: core.dispatch },
  register (ctx) {
    const { clock, dispatch } = ctx.services
    const otherwise = responsesOverChat(dispatch, clock)
    ctx.addRoute(defineRoute({
      method: 'POST',
      url: '/v1/responses',
      alsoAt: ['/responses'],
      tag: 'Responses',
      surface: 'responses',
      summary: 'A response of the Responses API, streaming or not',
      description: 'With `stream: true` the answer is `text/event-stream`, with the events of the Responses API.',
      schema: { body: responsesBodySchema, response: responsesAnswerSchema },
      answers: [{ type: 'text/event-stream' }],
      example: { model: 'agent', input: 'Say hello' },
      bodyKind: 'buffer',
      dialect: responsesDialect,
      handler: call => dispatch.forward(call, {
        surface: 'responses', path: '/responses', dialect: responsesDialect, edit: thinkingDefault, otherwise
      })
    }))
  }
})

/** A slot's reasoning default, for requests that do not speak of `reasoning`. Pure. */
function thinkingDefault (body: JsonBody, slot: NamedSlotConfig | null): BodyEdits | null {
  if (slot === null || slot.enable_thinking === null || body.has('reasoning')) return null
  return { add: { chat_template_kwargs: { enable_thinking: slot.enable_thinking } } }
}
