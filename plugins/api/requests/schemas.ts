import { requestPhases, requestPriorities, requestSurfaces } from 'svc-gateway/plugin'
import { z } from 'zod'

const requestSchema = z.strictObject({
  id: z.string().meta({ description: 'X-Request-ID; clients may choose their own, so it need not be unique' }),
  model: z.string().meta({ description: 'As the client named it' }),
  surface: z.enum(requestSurfaces),
  agent: z.string().nullable().meta({ description: 'The agent that asks, by its X-svc-Agent or by the headers that its plugin knows it by; null for none' }),
  slot: z.string().nullable().meta({ description: 'The slot that serves it; null for an upstream, or while that is being found out' }),
  upstream: z.string().nullable(),
  phase: z.enum(requestPhases),
  reason: z.string().nullable().meta({ description: 'Why there is no answer yet; null once only the engine is waited for' }),
  priority: z.enum(requestPriorities).meta({
    description: 'Its class in the line of a busy slot: `low` stands behind `normal` for half a minute. Text that is not streamed is low; the header `x-svc-priority` decides otherwise'
  }),
  attempt: z.int().min(1).meta({ description: 'More than 1 where an upstream failed it and it was sent again, or elsewhere' }),
  started_at: z.string().meta({ description: 'ISO 8601 UTC' }),
  age_ms: z.int(),
  bytes_in: z.int().meta({ description: 'Size of the request\'s body' }),
  bytes_out: z.int().meta({ description: 'Body bytes of the answer that went to the client so far' }),
  tokens: z.int().meta({ description: 'Generated so far; plain answers tell at their end' })
})

export const requestListSchema = z.strictObject({ requests: z.array(requestSchema).meta({ description: 'Oldest first' }) })

export const requestParamsSchema = z.strictObject({ id: z.string().min(1).meta({ description: 'Request id', pattern: '^[A-Za-z0-9._:-]{1,128}$', examples: ['req-1'] }) })

export const cancelledSchema = z.strictObject({
  id: z.string(),
  cancelled: z.int().min(1).meta({ description: 'How many requests had this id' })
})
