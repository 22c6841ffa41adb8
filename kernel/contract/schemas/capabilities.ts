import { z } from 'zod'
import { deviceSchema } from './enums.js'
import { PLUGIN_NAME_PATTERN } from './names.js'

/** What the overlay maps onto slots, by group. */
export const capabilityGroups = {
  embed: ['embed', 'rerank'],
  voice: ['stt', 'tts'],
  img: ['img'],
  vision: ['vision']
} as const
export type CapabilityGroup = keyof typeof capabilityGroups

export const capabilityChildren = ['embed', 'rerank', 'stt', 'tts', 'img', 'vision'] as const
export type CapabilityChild = typeof capabilityChildren[number]

/** The format of capabilities.toml; version 1 called the device `backend`. */
export const CAPABILITIES_VERSION = 2

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

export function capabilityGroupOf (child: CapabilityChild): CapabilityGroup {
  const groups = Object.keys(capabilityGroups) as CapabilityGroup[]
  return groups.find(group => (capabilityGroups[group] as readonly string[]).includes(child))!
}
