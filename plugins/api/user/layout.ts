import { nameSchema } from 'svc-gateway/plugin'
import { z } from 'zod'

/** Cards of the dashboard, second version of the layout. */
export const cardIds = [
  'slots', 'memory', 'throughput', 'quickchat', 'services', 'utilization', 'attention', 'slottrack', 'approvals', 'power', 'scheduler'
] as const

const PIN = 'pin:'
const MOST_ENTRIES = 500
const KEY = `^(${cardIds.join('|')}|${PIN}[a-z0-9][a-z0-9_-]{0,31})$`

const cardSchema = z.enum(cardIds, { error: `must be a card: ${cardIds.join(', ')}` })
/** A card, or the pin of a slot. */
const keySchema = z.string().meta({ pattern: KEY }).refine(key => {
  const isPin = key.startsWith(PIN) && nameSchema.safeParse(key.slice(PIN.length)).success
  return isPin || cardSchema.safeParse(key).success
}, { error: `must be a card (${cardIds.join(', ')}) or \`${PIN}<slot>\`` })

const spansSchema = z.record(z.string().meta({ pattern: KEY }), z.number({ error: 'must be a number of columns, 1 to 12' }))
  .transform(spans => Object.fromEntries(Object.entries(spans).map(([key, span]) => [key, columns(span)])))

function columns (span: number): number {
  return Math.min(12, Math.max(1, Math.round(span)))
}

/** Which cards the dashboard shows, in which order and how wide. Spans are cut to 1 to 12 columns. */
export const layoutSchema = z.strictObject({
  v: z.literal(2, { error: 'must be 2, the supported version of layouts' }),
  order: z.array(keySchema).max(MOST_ENTRIES).default([]),
  enabled: z.partialRecord(cardSchema, z.boolean({ error: 'must be true or false' })).default({}),
  spans: spansSchema.superRefine((spans, ctx) => {
    for (const key of Object.keys(spans)) {
      const { error } = keySchema.safeParse(key)
      if (error !== undefined) ctx.addIssue({ code: 'custom', path: [key], message: error.issues[0]!.message })
    }
  }).default({}),
  pinned: z.array(nameSchema).max(MOST_ENTRIES).default([])
})
export type Layout = z.output<typeof layoutSchema>

/** The layout without what belongs to slots that are gone, and without repetitions. Pure. */
export function reconciled (layout: Layout, slots: readonly string[]): Layout {
  const stands = (key: string): boolean => !key.startsWith(PIN) || slots.includes(key.slice(PIN.length))
  return {
    ...layout,
    order: [...new Set(layout.order)].filter(stands),
    spans: Object.fromEntries(Object.entries(layout.spans).filter(([key]) => stands(key))),
    pinned: [...new Set(layout.pinned)].filter(name => slots.includes(name))
  }
}
