import { severities } from 'svc-gateway/plugin'
import { z } from 'zod'

const followShape = {
  source: z.string().min(1).max(200).default('merged')
    .meta({ description: '`merged`, `all` or `svc`: everything; `slot`: all slots; else exact, such as `slot:agent`' }),
  slot: z.string().min(1).max(100).optional().meta({ description: 'Only entries about this slot' }),
  level: z.enum(severities).optional().meta({ description: 'Exactly this level' }),
  q: z.string().min(1).max(200).optional().meta({ description: 'Text to find in the message, ignoring case' })
}
const since = z.coerce.number().int().min(0).optional().meta({ description: 'Only entries with a higher id' })

export const listQuerySchema = z.strictObject({
  ...followShape,
  since,
  limit: z.coerce.number().int().min(1).max(500).default(200)
    .meta({ description: 'Maximum number of entries in one answer: the newest, or with `since` the next' })
})
export type JournalQuery = z.output<typeof listQuerySchema>

export const streamQuerySchema = z.strictObject({ ...followShape, since })

export const entrySchema = z.strictObject({
  id: z.int(),
  ts: z.string().meta({ description: 'ISO 8601 UTC' }),
  source: z.string(),
  level: z.enum(severities),
  msg: z.string(),
  slot: z.string().nullable(),
  data: z.looseObject({ type: z.string(), source: z.string() })
}).meta({ title: 'JournalEntry' })
export type JournalEntry = z.output<typeof entrySchema>

export const listSchema = z.strictObject({
  entries: z.array(entrySchema).meta({ description: 'Ascending' }),
  next_since: z.int().meta({ description: 'Pass as `since` to get later rows' })
})
