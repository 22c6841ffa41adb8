import { core, definePlugin, defineRoute } from 'svc-gateway/plugin'
import { z } from 'zod'
import { thinkingEdits } from './thinking.js'

const chatBodySchema = z.looseObject({
  model: z.string().meta({ description: 'Slot name, model id, `svc/<role>` or upstream model' }),
  messages: z.array(z.looseObject({ role: z.string() })),
  stream: z.boolean().optional(),
  omni: z.boolean().optional().meta({ description: 'Opt in to the tool-calling loop; never reaches the engine' })
})

const completionBodySchema = z.looseObject({
  model: z.string(),
  prompt: z.union([z.string(), z.array(z.string()), z.array(z.int()), z.array(z.array(z.int()))]),
  stream: z.boolean().optional()
})

/** Keys that mean something to the gateway alone: engines must not see them (SPEC.md "chat/completions"). */
const GATEWAY_KEYS = ['omni']

/**
 * Chat and legacy completions. The body is documented by the schema and not validated by it: what the gateway
 * does not use is the engine's to judge, and unknown options pass through (DESIGN 9).
 */
export default definePlugin({
  name: 'v1-text',
  kind: 'routes',
  apiVersion: 1,
  requires: { dispatch: core.dispatch },
  register (ctx) {
    const { dispatch } = ctx.services
    ctx.addRoute(defineRoute({
      method: 'POST',
      url: '/v1/chat/completions',
      summary: 'Chat completion, streaming or not',
      schema: { body: chatBodySchema },
      bodyKind: 'buffer',
      produces: 'application/json',
      handler: call => dispatch.forward(call, { surface: 'chat', path: '/chat/completions', drop: GATEWAY_KEYS, edit: thinkingEdits })
    }))
    ctx.addRoute(defineRoute({
      method: 'POST',
      url: '/v1/completions',
      summary: 'Legacy text completion, streaming or not',
      schema: { body: completionBodySchema },
      bodyKind: 'buffer',
      produces: 'application/json',
      handler: call => dispatch.forward(call, { surface: 'completions', path: '/completions', drop: GATEWAY_KEYS })
    }))
  }
})
