import { z } from 'zod'
import { slotCountersSchema, slotMemorySchema } from './ref.js'

/** `GET /api/slots/metrics`: by slot name. */
export const metricsSchema = z.record(z.string(), slotCountersSchema)

/** `GET /api/slots/capacity`. */
export const capacitySchema = z.strictObject({
  per_slot: z.record(z.string(), slotMemorySchema),
  slot_budget: z.strictObject({
    used_slots: z.int(),
    max_slots: z.int().meta({ description: '0 is unlimited' })
  })
})
