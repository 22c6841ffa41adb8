import { z } from 'zod'

const modelSchema = z.string().meta({ description: 'Slot name, model id or `svc/<role>`', pattern: '\\S' })

export const tokenizeBodySchema = z.looseObject({
  model: modelSchema,
  prompt: z.string().optional().meta({ description: 'A text; or `messages`' }),
  messages: z.array(z.looseObject({ role: z.string() })).optional().meta({ description: 'A chat, rendered with the template of the model' }),
  add_special_tokens: z.boolean().optional().meta({ description: 'Default: true for a text, false for a chat, whose template has them' }),
  return_token_strs: z.boolean().optional()
})

export const tokenizeAnswerSchema = z.looseObject({
  count: z.int(),
  max_model_len: z.int().meta({ description: 'Tokens of context; 0 where the engine does not say' }),
  tokens: z.array(z.int()),
  token_strs: z.array(z.string()).nullish()
})

export const detokenizeBodySchema = z.looseObject({ model: modelSchema, tokens: z.array(z.int()) })
export const detokenizeAnswerSchema = z.looseObject({ prompt: z.string() })
