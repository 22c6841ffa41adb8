import { z } from 'zod'

const modelSchema = z.string().meta({ description: 'Slot name, model id, `svc/<slot>` or upstream model' })

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
