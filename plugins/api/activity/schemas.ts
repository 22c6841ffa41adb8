import { activityKinds, activityOutcomes, activitySeverities } from 'svc-gateway/plugin'
import { z } from 'zod'

const word = z.string().min(1).max(200)
const id = z.coerce.number().int().min(0)

const filterShape = {
  since: id.optional().meta({ description: 'Only rows with a higher id' }),
  category: word.optional(),
  action: z.string().regex(/^[A-Za-z0-9._*?-]{1,100}$/, { error: 'must be an action; * matches anything' }).optional()
    .meta({ description: 'Action; `*` matches anything: `slot.*`' }),
  target: word.optional(),
  severity: z.enum(activitySeverities).optional(),
  outcome: z.enum(activityOutcomes).optional(),
  actor: word.optional().meta({ description: '`dashboard`, `mcp:<agent>`, `system`' }),
  kind: z.enum(activityKinds).optional().meta({ description: '`action`: done by an operator or client; `event`: happened on its own' }),
  search: word.optional().meta({ description: 'Text to find in action, target, actor, message or error' })
}

const limit = z.coerce.number().int().min(1).max(1000).default(200)

export const listQuerySchema = z.strictObject({
  ...filterShape,
  before: id.optional().meta({ description: 'Only rows with a lower id: `next_before` of the previous page' }),
  limit: limit.meta({ description: 'Maximum number of rows in one answer' })
})

export const streamQuerySchema = z.strictObject({
  ...filterShape,
  limit: limit.meta({ description: 'How many of the latest rows to send first if there is no `since`' })
})

export const exportQuerySchema = z.strictObject({
  ...filterShape,
  fmt: z.enum(['csv', 'json']).default('json')
})

export const rowSchema = z.strictObject({
  id: z.int(),
  ts: z.string().meta({ description: 'ISO 8601 UTC' }),
  kind: z.enum(activityKinds),
  category: z.string(),
  action: z.string().meta({ description: 'Dotted verb: `slot.create`' }),
  target: z.string(),
  actor: z.string(),
  severity: z.enum(activitySeverities),
  outcome: z.enum(activityOutcomes).nullable(),
  message: z.string(),
  before: z.unknown().meta({ description: 'Without secrets; null if unknown' }),
  after: z.unknown(),
  error: z.string().nullable(),
  duration_ms: z.number().nullable(),
  request_id: z.string().nullable()
}).meta({ title: 'ActivityRow' })

export const listSchema = z.strictObject({
  records: z.array(rowSchema).meta({ description: 'Newest first' }),
  next_since: z.int().meta({ description: 'Pass as `since` to get later rows' }),
  next_before: z.int().nullable().meta({ description: 'Pass as `before` to get older rows; null if there are none' }),
  epoch: z.string().meta({ description: 'Changes when ids restart from 1; a restart of the gateway does not change it' })
})

export const exportSchema = z.strictObject({ records: z.array(rowSchema) })
