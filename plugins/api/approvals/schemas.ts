import { approvalStates } from 'svc-gateway/plugin'
import { z } from 'zod'

const epoch = z.number().meta({ description: 'Epoch seconds' })

export const approvalSchema = z.strictObject({
  id: z.string().meta({ description: '32 hex digits' }),
  server: z.string().meta({ description: 'Tool server: `/mcp/<server>`' }),
  tool: z.string(),
  args: z.record(z.string(), z.unknown()).meta({ description: 'Without secrets; `***` for texts that only an operator may see, while the call is pending' }),
  primary: z.string().nullable().meta({ description: 'Subject of the call: the model, the slot; null if unknown' }),
  client_id: z.string().meta({ description: 'The calling agent, by the name that it gave' }),
  state: z.enum(approvalStates),
  hit_count: z.int().min(1).meta({ description: 'How often it was requested while pending' }),
  enqueued_at: epoch,
  expires_at: epoch.nullable().meta({ description: 'Epoch seconds; null once it is decided' }),
  decided_at: epoch.nullable(),
  decided_by: z.string().nullable().meta({ description: 'Null until it is decided, and when it expired' }),
  reason: z.string().nullable().meta({ description: 'Reason that the operator gave for a denial' }),
  finished_at: epoch.nullable(),
  result: z.unknown().meta({ description: 'Answer of the tool; null before it, and after a failure' }),
  error: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
  is_cut: z.boolean().meta({ description: 'Arguments or result are shortened; `GET /api/agent/approvals/{id}` has them whole' })
}).meta({ title: 'Approval' })

export const answerSchema = z.strictObject({ approval: approvalSchema })

export const listSchema = z.strictObject({
  approvals: z.array(approvalSchema).meta({ description: 'Newest first' }),
  next_before: z.int().nullable().meta({ description: 'Pass as `before` to get older ones; null if there are none' })
})

export const listQuerySchema = z.strictObject({
  state: z.enum([...approvalStates, 'all']).default('pending'),
  before: z.coerce.number().int().min(0).optional().meta({ description: '`next_before` of the previous page' }),
  limit: z.coerce.number().int().min(1).max(200).default(200)
})

export const paramsSchema = z.strictObject({ id: z.string().min(1).max(64).meta({ description: 'Id of the approval', pattern: '^[0-9a-f]{32}$', examples: ['0123456789abcdef0123456789abcdef'] }) })

export const denySchema = z.strictObject({
  reason: z.string().max(500).optional().meta({ description: 'Sent to the agent' })
})

export const decisionSchema = z.strictObject({
  decision: z.enum(['approve', 'deny']),
  reason: z.string().max(500).optional().meta({ description: 'Reason of a denial; sent to the agent' })
})
