import { requestPhases, requestPriorities, requestSurfaces } from 'svc-gateway/plugin'
import { z } from 'zod'

const requestSchema = z.strictObject({
  id: z.string().meta({ description: 'X-Request-ID; clients may choose their own, so it need not be unique' }),
  model: z.string().meta({ description: 'As given by the client' }),
  surface: z.enum(requestSurfaces),
  agent: z.string().nullable().meta({ description: 'The calling agent, by X-svc-Agent or by headers that its plugin recognises; null if none' }),
  slot: z.string().nullable().meta({ description: 'The slot that serves it; null for an upstream, or before that is known' }),
  upstream: z.string().nullable(),
  phase: z.enum(requestPhases),
  reason: z.string().nullable().meta({ description: 'Why there is no answer yet; null once it waits only for the engine' }),
  priority: z.enum(requestPriorities).meta({
    description: 'Its priority in the queue of a busy slot: `low` waits behind `normal` for up to half a minute. Text that is not streamed is low; the header `x-svc-priority` overrides it'
  }),
  attempt: z.int().min(1).meta({ description: 'More than 1 if it was retried after a failure of an upstream' }),
  started_at: z.string().meta({ description: 'ISO 8601 UTC' }),
  age_ms: z.int(),
  bytes_in: z.int().meta({ description: 'Size of the request\'s body' }),
  bytes_out: z.int().meta({ description: 'Body bytes of the answer that went to the client so far' }),
  tokens: z.int().meta({ description: 'Tokens generated so far; for answers without streaming only at the end' })
})

export const requestListSchema = z.strictObject({ requests: z.array(requestSchema).meta({ description: 'Oldest first' }) })

export const requestParamsSchema = z.strictObject({ id: z.string().min(1).meta({ description: 'Request id', pattern: '^[A-Za-z0-9._:-]{1,128}$', examples: ['req-1'] }) })

export const cancelledSchema = z.strictObject({
  id: z.string(),
  cancelled: z.int().min(1).meta({ description: 'Number of requests with this id' })
})
