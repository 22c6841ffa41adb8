import { core, definePlugin, defineRoute, isSvcError, type DispatchService } from 'svc-gateway/plugin'
import { z } from 'zod'
import { moderationsError } from './errors.js'
import { moderationOverChat } from './guard.js'

/** What clients mean that name no model. */
const USUAL = 'omni-moderation-latest'

const bodySchema = z.looseObject({
  input: z.union([z.string(), z.array(z.union([z.string(), z.looseObject({ type: z.string() })]))]),
  model: z.string().nullish().meta({ description: `Model of an upstream, or a slot with a guard model; default: ${USUAL}` })
})

const answerSchema = z.looseObject({
  id: z.string(),
  model: z.string(),
  results: z.array(z.looseObject({ flagged: z.boolean(), categories: z.looseObject({}), category_scores: z.looseObject({}) }))
})

/** `/v1/moderations`: at an upstream, or by a guard model of a slot. */
export default definePlugin({
  name: 'v1-moderations',
  kind: 'routes',
  apiVersion: 1,
  errors: moderationsError,
  requires: { dispatch: core.dispatch },
  register (ctx) {
    const { dispatch } = ctx.services
    const otherwise = moderationOverChat(dispatch)
    ctx.addRoute(defineRoute({
      method: 'POST',
      url: '/v1/moderations',
      alsoAt: ['/moderations'],
      tag: 'Chat and text',
      summary: 'Whether texts are harmful',
      description: 'Forwarded to an upstream that has it; a slot answers with a guard model such as Llama Guard.',
      schema: { body: bodySchema, response: answerSchema },
      example: { model: 'agent', input: 'Hello' },
      handler: async call => {
        const asked = call.body.model?.trim() ?? ''
        const model = asked === '' ? USUAL : asked
        if (asked === '') await assertKnown(dispatch, call.signal)
        const body = Buffer.from(JSON.stringify({ ...call.body, model }))
        return dispatch.compose(call, { surface: 'moderation', model, stream: false }, async signal => {
          const { requestId, request: { headers: origin } } = call
          return await dispatch.call({ surface: 'moderation', path: '/moderations', body, requestId, origin, signal, otherwise })
        })
      }
    }))
  }
})

/** A name that is not listed may be asked for all the same. */
async function assertKnown (dispatch: DispatchService, signal: AbortSignal): Promise<void> {
  await dispatch.model(USUAL, signal).catch((error: unknown) => {
    if (isSvcError(error) && error.code === 'model.not_found') throw unavailable()
  })
}

function unavailable (): Error {
  return moderationsError('moderations.unavailable',
    `\`model\` is missing and nothing here is called ${USUAL}: add an upstream that has it (\`svc upstream add openai --template openai\`), ` +
    `or give that name to a slot with a guard model (\`svc alias set ${USUAL} <slot>\`)`, { param: 'model' })
}
