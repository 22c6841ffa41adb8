import type { ModelRegistry, NamedSlotConfig } from 'svc-gateway/plugin'

/** What the model of a slot can do: the slot's labels, and what the registry knows of its model. Pure. */
function labelsOf (slot: NamedSlotConfig, models: Pick<ModelRegistry, 'get'>): ReadonlySet<string> {
  const model = slot.model.default === null ? undefined : models.get(slot.model.default)
  return new Set<string>([...slot.model.labels, ...model?.tags ?? [], ...model?.capabilities ?? []])
}

/** Whether the model advertises tool calling: by a label, a tag, or the chat template in its file. */
export function canCallTools (slot: NamedSlotConfig, models: Pick<ModelRegistry, 'get'>): boolean {
  if (labelsOf(slot, models).has('tool-calling')) return true
  return slot.model.default !== null && models.get(slot.model.default)?.metadata.tool_calling === true
}

/** Whether the slot takes images: its model can, or has a projector, and the slot does not leave it out. */
export function canSee (slot: NamedSlotConfig, models: Pick<ModelRegistry, 'get'>): boolean {
  if (!slot.vision) return false
  const projector = slot.model.default === null ? null : models.get(slot.model.default)?.mmproj ?? null
  return projector !== null || labelsOf(slot, models).has('vision')
}
