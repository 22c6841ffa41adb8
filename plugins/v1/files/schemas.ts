import { z } from 'zod'

export const fileSchema = z.looseObject({
  id: z.string(),
  object: z.literal('file'),
  bytes: z.int(),
  created_at: z.int().meta({ description: 'Epoch seconds' }),
  expires_at: z.int().optional().meta({ description: 'Epoch seconds; absent if it is kept until it is deleted' }),
  filename: z.string(),
  purpose: z.string().meta({ description: '`batch`, or `batch_output` for the output of a batch' }),
  status: z.literal('processed')
})

export const fileListSchema = z.strictObject({
  object: z.literal('list'),
  data: z.array(fileSchema),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
  has_more: z.boolean()
})

export const deletedFileSchema = z.strictObject({ id: z.string(), object: z.literal('file'), deleted: z.literal(true) })

/** Documents the form; `upload.ts` reads it. */
export const fileFormSchema = z.looseObject({
  'file': z.string().meta({ format: 'binary', description: 'JSON lines, one request each; see POST /v1/batches' }),
  'purpose': z.literal('batch'),
  'expires_after[anchor]': z.literal('created_at').optional(),
  'expires_after[seconds]': z.int().optional().meta({ description: '3600 to 2592000; default: 30 days' })
})

export const fileQuerySchema = z.looseObject({
  after: z.string().optional().meta({ description: 'Id of the last file of the previous page' }),
  limit: z.coerce.number().int().min(1).max(10_000).default(10_000),
  order: z.enum(['asc', 'desc']).default('desc').meta({ description: 'By creation time' }),
  purpose: z.string().optional()
})
export type FileQuery = z.output<typeof fileQuerySchema>

export const fileParamsSchema = z.strictObject({
  file_id: z.string().meta({ pattern: '^[^/]+$', examples: ['file-0123456789abcdef01234567'] })
})
