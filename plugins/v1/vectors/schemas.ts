import { z } from 'zod'

const modelSchema = z.string().meta({ description: 'Slot name, model id, `svc/<slot>` or upstream model', pattern: '\\S' })

export const embeddingsBodySchema = z.looseObject({
  model: modelSchema,
  input: z.union([z.string(), z.array(z.string()), z.array(z.int()), z.array(z.array(z.int()))])
    .meta({ description: 'One text, many, or tokens' }),
  encoding_format: z.enum(['float', 'base64']).optional(),
  dimensions: z.int().optional()
})

export const rerankBodySchema = z.looseObject({
  model: modelSchema,
  query: z.string(),
  documents: z.array(z.union([z.string(), z.looseObject({})])),
  top_n: z.int().optional()
})

const usageSchema = z.looseObject({ prompt_tokens: z.int().optional(), total_tokens: z.int() })

/** What engines answer; it is documented and passed on as it comes. */
export const embeddingsAnswerSchema = z.looseObject({
  object: z.literal('list'),
  model: z.string(),
  data: z.array(z.looseObject({
    object: z.literal('embedding'),
    index: z.int(),
    embedding: z.union([z.array(z.number()), z.string()]).meta({ description: 'Numbers, or base64 of 32-bit floats' })
  })),
  usage: usageSchema.optional()
})

export const rerankAnswerSchema = z.looseObject({
  model: z.string().optional(),
  results: z.array(z.looseObject({
    index: z.int().meta({ description: 'Index of the document in the request' }),
    relevance_score: z.number()
  })),
  usage: usageSchema.optional()
})
