import { z } from 'zod'

/** `[plugins.config.v1-responses]`. */
export const keepingSchema = z.strictObject({
  store: z.boolean().default(true)
    .meta({ description: 'Whether responses are kept for `previous_response_id` and `GET /v1/responses/{id}`; off deletes those that are' }),
  keep_days: z.int().min(1).max(3650).default(30).meta({ description: 'How long a conversation is kept after its last response' }),
  max_responses: z.int().min(100).max(1_000_000).default(10_000).meta({ description: 'How many are kept; the least recently used conversation is deleted first' }),
  max_mb: z.int().min(256).max(1_000_000).default(1024).meta({ description: 'Disk space for all of them together, in MB' })
})
export type Keeping = z.output<typeof keepingSchema>
