import { z } from 'zod'
import type { ApiClient } from '../../client/client.js'
import { CliFailure } from '../../failure.js'
import type { Colour } from '../../terminal/output.js'

export const approvalSchema = z.looseObject({
  id: z.string(),
  server: z.string(),
  tool: z.string(),
  args: z.record(z.string(), z.unknown()),
  primary: z.string().nullish(),
  client_id: z.string(),
  state: z.string(),
  hit_count: z.number(),
  enqueued_at: z.number(),
  expires_at: z.number().nullish(),
  decided_by: z.string().nullish(),
  reason: z.string().nullish(),
  error: z.looseObject({ code: z.string(), message: z.string() }).nullish()
})
export type Approval = z.output<typeof approvalSchema>

export const approvalListSchema = z.looseObject({ approvals: z.array(approvalSchema), next_before: z.number().nullish() })
export const approvalAnswerSchema = z.looseObject({ approval: approvalSchema })
export const approvalEventSchema = z.looseObject({ kind: z.string(), entry: approvalSchema })

/** Enough to tell entries apart, and to type. */
const SHORT = 8
const WHOLE = 32

export function shortId ({ id }: Approval): string {
  return id.slice(0, SHORT)
}

/** The whole id of what was typed: the beginning of one that is pending will do. */
export async function wholeId (client: ApiClient, typed: string): Promise<string> {
  if (typed.length >= WHOLE) return typed
  const { approvals } = await client.call({ path: '/api/agent/approvals' }, approvalListSchema)
  const found = approvals.filter(({ id }) => id.startsWith(typed.toLowerCase()))
  if (found.length === 1) return found[0]!.id
  const hints = ['`svc agent approvals list` shows the pending ones.']
  if (found.length === 0) throw new CliFailure(`no pending call has an id that starts with ${typed}`, { hints })
  throw new CliFailure(`${found.length} pending calls have ids that start with ${typed}; type more of the id`, { hints })
}

/** `tool model (key=value, …)`: what it would do. */
export function summaryOf ({ args, primary }: Approval): string {
  const rest = Object.entries(args).filter(([, value]) => value !== primary)
    .map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  return [...primary == null ? [] : [primary], ...rest].join(' ')
}

export function stateColour (state: string): Colour {
  if (state === 'executed') return 'green'
  return state === 'failed' || state === 'denied' ? 'red' : 'yellow'
}
