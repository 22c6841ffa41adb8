import { z } from 'zod'
import { priceKeySchema, pricePatchSchema, priceSchema } from '../../services/agent-budgets/ref.js'

const usd = z.number().min(0).max(1_000_000)
const cap = usd.nullable()
const shown = z.number().meta({ description: 'US dollars' })

export const budgetPatchSchema = z.strictObject({
  daily_usd: cap.optional().meta({ description: 'Daily cap (UTC); null for none, 0 refuses everything that costs money' }),
  monthly_usd: cap.optional().meta({ description: 'Monthly cap (UTC calendar months)' }),
  lifetime_usd: cap.optional(),
  per_call_max_usd: cap.optional().meta({ description: 'Cap on the cost of one request' }),
  hard_cap: z.boolean().optional().meta({ description: 'False: nothing is refused, requests over a cap are only reported' })
})

const budgetSchema = z.strictObject({
  daily_usd: z.number().nullable(),
  monthly_usd: z.number().nullable(),
  lifetime_usd: z.number().nullable(),
  per_call_max_usd: z.number().nullable(),
  hard_cap: z.boolean()
})

const viewShape = {
  budget: budgetSchema.nullable().meta({ description: 'Null: no budget, and spending is not counted' }),
  spend: z.strictObject({ today_usd: shown, mtd_usd: shown, lifetime_usd: shown }),
  remaining: z.strictObject({ daily_usd: shown.optional(), monthly_usd: shown.optional(), lifetime_usd: shown.optional() })
    .meta({ description: 'For the windows that have a cap' })
}
export const viewSchema = z.strictObject(viewShape)

export const checkBodySchema = z.strictObject({ estimated_cost_usd: usd })
export const checkSchema = z.strictObject({
  allowed: z.boolean(),
  reason: z.string().nullable().meta({ description: '`per_call`, `daily`, `monthly` or `lifetime`' }),
  remaining_usd: z.number().nullable(),
  hard_cap: z.boolean()
})

export const chargeBodySchema = z.strictObject({
  surface: z.string().min(1).max(64),
  model: z.string().min(1).max(600),
  cost_usd: usd,
  request_id: z.string().min(1).max(200).optional()
    .meta({ description: 'The same amount for the same request, surface and model is charged only once, even if sent again' }),
  spent: z.boolean().default(false).meta({ description: 'Already spent: recorded regardless of caps' })
})

const rowSchema = z.strictObject({
  seq: z.int(),
  ts: z.string().meta({ description: 'ISO 8601 UTC' }),
  kind: z.enum(['reserve', 'settle', 'charge']).meta({ description: '`reserve`: the estimate of a request; `settle`: its actual cost minus the estimate' }),
  settles: z.int().nullable().meta({ description: 'The `reserve` that a `settle` belongs to' }),
  persona_id: z.string(),
  surface: z.string(),
  upstream: z.string().nullable(),
  model: z.string(),
  cost_usd: z.number(),
  request_id: z.string().nullable(),
  input_tokens: z.number().nullable(),
  output_tokens: z.number().nullable()
})
export const chargedSchema = z.strictObject({ ...viewShape, recorded: z.literal(true), row: rowSchema })

export const ledgerQuerySchema = z.strictObject({
  limit: z.coerce.number().int().min(1).max(1000).default(100),
  before: z.coerce.number().int().min(1).optional().meta({ description: 'Only rows with a lower `seq`: `next_before` of the previous page' })
})
export const ledgerSchema = z.strictObject({
  rows: z.array(rowSchema).meta({ description: 'Newest first' }),
  next_before: z.int().nullable()
})

export const pricesSchema = z.strictObject({
  prices: z.record(z.string(), priceSchema).meta({ description: 'By `<upstream>/<model>`; a `*` at the end matches anything' })
})
export const pricesPatchSchema = z.strictObject({ prices: z.record(priceKeySchema, pricePatchSchema.nullable()) })
