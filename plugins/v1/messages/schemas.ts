import { z } from 'zod'

const messageSchema = z.looseObject({
  role: z.string(),
  content: z.union([z.string(), z.array(z.looseObject({ type: z.string() }))])
})

export const countBodySchema = z.looseObject({
  model: z.string().meta({ description: 'Slot name, model id, `svc/<role>` or upstream model', pattern: '\\S' }),
  messages: z.array(messageSchema),
  system: z.unknown().optional(),
  tools: z.array(z.unknown()).optional()
})

export const messagesBodySchema = countBodySchema.extend({
  max_tokens: z.int(),
  stream: z.boolean().optional()
})

export const countAnswerSchema = z.looseObject({ input_tokens: z.int() })

/** What engines answer; it is documented and passed on as it comes. */
export const messagesAnswerSchema = z.looseObject({
  id: z.string(),
  type: z.literal('message'),
  role: z.literal('assistant'),
  model: z.string(),
  content: z.array(z.looseObject({ type: z.string() })),
  stop_reason: z.string().nullable(),
  usage: z.looseObject({ input_tokens: z.int(), output_tokens: z.int() })
})
