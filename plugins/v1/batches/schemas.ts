import { z } from 'zod'
import { batchEndpoints, batchStatuses, type BatchRecord } from './record.js'

const time = z.int().nullable().meta({ description: 'Epoch seconds' })

export const batchSchema = z.looseObject({
  id: z.string(),
  object: z.literal('batch'),
  endpoint: z.enum(batchEndpoints),
  errors: z.strictObject({
    object: z.literal('list'),
    data: z.array(z.strictObject({
      code: z.string(), line: z.int().nullable(), message: z.string(), param: z.string().nullable()
    }))
  }).nullable().meta({ description: 'Problems of the file, by line' }),
  input_file_id: z.string(),
  completion_window: z.string(),
  status: z.enum(batchStatuses),
  output_file_id: z.string().nullable().meta({ description: 'JSON lines of the successful requests; null until there are any' }),
  error_file_id: z.string().nullable().meta({ description: 'JSON lines of all other requests' }),
  created_at: z.int(),
  in_progress_at: time,
  expires_at: z.int(),
  finalizing_at: time,
  completed_at: time,
  failed_at: time,
  expired_at: time,
  cancelling_at: time,
  cancelled_at: time,
  request_counts: z.strictObject({ total: z.int(), completed: z.int(), failed: z.int() }),
  metadata: z.record(z.string(), z.string()).nullable()
})

export const batchListSchema = z.strictObject({
  object: z.literal('list'),
  data: z.array(batchSchema),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
  has_more: z.boolean()
})

export const batchBodySchema = z.looseObject({
  input_file_id: z.string().min(1).meta({ description: 'A file of POST /v1/files' }),
  endpoint: z.enum(batchEndpoints, { error: `must be one of ${batchEndpoints.join(', ')}` }),
  completion_window: z.string().regex(/^([1-9]\d{0,2}h|[1-9]\d?d)$/, { error: 'must look like 24h or 7d' })
    .meta({ description: 'Requests not finished by then expire' }),
  metadata: z.record(z.string().max(64), z.string().max(512)).refine(words => Object.keys(words).length <= 16, { error: 'may have at most 16 keys' })
    .nullish(),
  output_expires_after: z.looseObject({
    anchor: z.literal('created_at'), seconds: z.int().min(3600).max(2_592_000)
  }).nullish().meta({ description: 'When its output files expire; default: 30 days' })
})
export type BatchBody = z.output<typeof batchBodySchema>

export const batchQuerySchema = z.looseObject({
  after: z.string().optional().meta({ description: 'Id of the last batch of the previous page' }),
  limit: z.coerce.number().int().min(1).max(100).default(20)
})

export const batchParamsSchema = z.strictObject({
  batch_id: z.string().meta({ pattern: '^[^/]+$', examples: ['batch_0123456789abcdef01234567'] })
})

/** As clients see it. Pure. */
export function shownBatch (batch: BatchRecord): z.input<typeof batchSchema> {
  const { total, completed, failed, problems } = batch
  return {
    id: batch.id,
    object: 'batch',
    endpoint: batch.endpoint,
    errors: problems.length === 0 ? null : { object: 'list', data: [...problems] },
    input_file_id: batch.inputFileId,
    completion_window: batch.completionWindow,
    status: batch.status,
    output_file_id: batch.outputFileId,
    error_file_id: batch.errorFileId,
    created_at: batch.createdAt,
    in_progress_at: batch.inProgressAt,
    expires_at: batch.expiresAt,
    finalizing_at: batch.finalizingAt,
    completed_at: batch.completedAt,
    failed_at: batch.failedAt,
    expired_at: batch.expiredAt,
    cancelling_at: batch.cancellingAt,
    cancelled_at: batch.cancelledAt,
    request_counts: { total, completed, failed },
    metadata: batch.metadata
  }
}
