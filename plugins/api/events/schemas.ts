import { severities } from 'svc-gateway/plugin'
import { z } from 'zod'

const since = z.coerce.number().int().min(0).meta({ description: 'Only events with a higher id' })
const type = z.string().regex(/^[A-Za-z0-9._*?-]{1,100}$/, { error: 'must be an event type; * matches anything' })
  .meta({ description: 'Event type; `*` matches anything: `slot.*`' })
const severity = z.enum(severities).meta({ description: 'Least severity' })

const followShape = { since: since.optional(), type: type.optional(), severity: severity.optional() }

export const followFilterSchema = z.strictObject(followShape)
export const listFilterSchema = z.strictObject({
  ...followShape,
  limit: z.coerce.number().int().min(1).max(1000).default(200)
    .meta({ description: 'Maximum number of events in one answer: the newest, or with `since` the next' })
})

export const eventSchema = z.strictObject({
  id: z.int().meta({ description: 'Counts up from 1 in every epoch' }),
  ts: z.string().meta({ description: 'ISO 8601 UTC' }),
  type: z.string(),
  severity: z.enum(severities),
  source: z.string().meta({ description: '`slot:<name>`, `model:<id>`, `system`, ...' }),
  message: z.string(),
  data: z.record(z.string(), z.unknown())
}).meta({ title: 'GatewayEvent' })

export const eventListSchema = z.strictObject({
  events: z.array(eventSchema).meta({ description: 'Ascending' }),
  next_since: z.int().meta({ description: 'Pass as `since` to get later rows' }),
  epoch: z.string().meta({ description: 'Changes when the gateway restarts, which also restarts the ids' })
})
