import { z } from 'zod'

export const searchQuerySchema = z.strictObject({
  q: z.string().max(200).default('').meta({ description: 'Search terms' }),
  type: z.string().regex(/^[a-z0-9-]{1,64}$/, { error: 'must be gguf, or a task such as text-generation' }).optional()
    .meta({ description: '`gguf` for models in that format, else a task of the hub such as `text-generation`' }),
  limit: z.coerce.number().int().min(1).max(20).default(20)
})

export const searchSchema = z.strictObject({
  results: z.array(z.strictObject({
    id: z.string(),
    downloads: z.number(),
    likes: z.number(),
    gated: z.boolean(),
    pipeline_tag: z.string().nullable(),
    library: z.string().nullable(),
    last_modified: z.string().nullable()
  })),
  cached: z.boolean(),
  problem: z.string().nullable().meta({ description: 'Why the hub did not answer; the list is then empty' })
})
