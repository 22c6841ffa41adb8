import { z } from 'zod'

const modelSchema = z.string().meta({ description: 'Slot name, model id, `svc/<role>` or upstream model', pattern: '\\S' })

export const fimBodySchema = z.looseObject({
  model: modelSchema,
  prompt: z.string().meta({ description: 'Text before the gap' }),
  suffix: z.string().nullish().meta({ description: 'Text after the gap' }),
  max_tokens: z.int().nullish(),
  stream: z.boolean().optional()
})

export const fimAnswerSchema = z.looseObject({
  id: z.string(),
  object: z.literal('chat.completion'),
  model: z.string(),
  choices: z.array(z.looseObject({
    index: z.int(),
    message: z.looseObject({ role: z.string(), content: z.string().nullish() }),
    finish_reason: z.string().nullable()
  }))
})

export const infillBodySchema = z.looseObject({
  model: modelSchema,
  input_prefix: z.string().meta({ description: 'Text before the gap' }),
  input_suffix: z.string().meta({ description: 'Text after the gap' }),
  input_extra: z.array(z.looseObject({ filename: z.string().optional(), text: z.string() })).optional(),
  n_predict: z.int().optional(),
  stream: z.boolean().optional()
})

export const infillAnswerSchema = z.looseObject({ content: z.string() })
