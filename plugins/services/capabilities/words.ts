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

export function capabilityGroupOf (child: CapabilityChild): CapabilityGroup {
  const groups = Object.keys(capabilityGroups) as CapabilityGroup[]
  return groups.find(group => (capabilityGroups[group] as readonly string[]).includes(child))!
}
