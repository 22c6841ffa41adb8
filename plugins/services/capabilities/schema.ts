import { deviceSchema, PLUGIN_NAME_PATTERN } from 'svc-gateway/plugin'
import { z } from 'zod'
import type { CapabilityChild } from './words.js'

/** What serves one child. Everything unset means that nothing was chosen yet. */
export const capabilitySelectionSchema = z.strictObject({
  device: deviceSchema.nullable().default(null),
  provider: z.string().regex(PLUGIN_NAME_PATTERN, { error: 'must be a provider name: lowercase words joined by dashes' }).nullable().default(null),
  model: z.string().min(1).nullable().default(null),
  enabled: z.boolean().default(false)
})
export type CapabilitySelection = z.output<typeof capabilitySelectionSchema>
/** By child: no two groups have one of the same name. */
export type CapabilitySelections = Readonly<Partial<Record<CapabilityChild, CapabilitySelection>>>
