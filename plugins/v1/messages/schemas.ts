import { z } from 'zod'

const messageSchema = z.looseObject({
  role: z.string(),
  content: z.union([z.string(), z.array(z.looseObject({ type: z.string() }))])
})

export const countBodySchema = z.looseObject({
  model: z.string().meta({ description: 'Slot name, model id, `svc/<role>` or upstream model' }),
  messages: z.array(messageSchema),
  system: z.unknown().optional(),
  tools: z.array(z.unknown()).optional()
})

export const messagesBodySchema = countBodySchema.extend({
  max_tokens: z.int(),
  stream: z.boolean().optional()
})
