import type { NamedSlotConfig, SlotDependents } from 'svc-gateway/plugin'
import { putSelection, selectionsOf } from './selections.js'
import type { CapabilitySelections } from './schema.js'
import { capabilityChildren, type CapabilityChild } from './words.js'

/** Capabilities that are switched on on the NPU live in the engine of the llm slot there, and stay switched off without it. */
export const dependents: SlotDependents<CapabilitySelections> = {
  one: 'capability',
  all: 'capabilities',
  of: servedBy,
  async drop (draft, name) {
    const child = capabilityChildren.find(other => other === name)
    const selection = child === undefined ? undefined : selectionsOf(draft)[child]
    if (child !== undefined && selection !== undefined) await putSelection(draft, child, { ...selection, enabled: false })
  }
}

function servedBy (
  selections: CapabilitySelections, anchor: NamedSlotConfig, slots: ReadonlyMap<string, NamedSlotConfig>
): readonly CapabilityChild[] {
  if (anchor.device !== 'npu' || anchor.served_by !== null || anchor.type !== 'llm') return []
  if ([...slots.values()].some(other => other.name !== anchor.name && couldServe(other, anchor))) return []
  return capabilityChildren.filter(child => {
    const selection = selections[child]
    return selection?.enabled === true && selection.device === 'npu' && selection.provider === anchor.provider
  })
}

function couldServe ({ device, type, provider, served_by: by }: NamedSlotConfig, anchor: NamedSlotConfig): boolean {
  return by === null && device === anchor.device && type === anchor.type && provider === anchor.provider
}
