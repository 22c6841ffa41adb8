import type { NamedSlotConfig } from 'svc-gateway/plugin'
import { capabilityChildren, capabilityChoices } from '../../services/capabilities/ref.js'
import {
  stackSchema, stackSlotSchema, type Stack, type StackCapability, type StackSlot
} from '../../services/stack-catalog/ref.js'
import type { StackServices } from './stack-api.js'

type Sources = Pick<StackServices, 'config' | 'overlay'>

/** A stack of the enabled slots and capabilities as they are configured now. Applying it changes nothing. */
export function snapshotOf ({ config, overlay }: Sources, about: Pick<Stack, 'name' | 'description'>): Stack {
  const { slots } = config.snapshot
  const capabilities = capabilityChoices.of(config.snapshot)
  const children = capabilityChildren.filter(child => capabilities[child]?.enabled === true)
    .map(child => ({ child, slot: slots.get(overlay.slotOf(child)), selection: capabilities[child]! }))
  // a slot that serves a capability comes along with it
  const serving = new Set(children.flatMap(({ child, slot }) => slot?.type === overlay.slotType(child) ? [slot.name] : []))
  const rows = [...slots.values()].filter(slot => isOfStack(slot) && !serving.has(slot.name)).map(rowOf)
  const wanted = children.map(({ child, slot, selection }): StackCapability => {
    const { device, provider, model } = slot !== undefined && serving.has(slot.name)
      ? { device: slot.device ?? selection.device, provider: slot.provider, model: slot.model.default }
      : selection
    return { child, device, provider, model, enabled: true }
  })
  const [first, ...others] = rows
  if (wanted.length > 0 && first === undefined) {
    // a row that only carries capabilities
    rows.push(stackSlotSchema.parse({ slot: overlay.slotOf(wanted[0]!.child), capabilities: wanted }))
  }
  return stackSchema.parse({
    ...about,
    slots: first === undefined ? rows : [{ ...first, capabilities: wanted }, ...others]
  })
}

function isOfStack ({ enabled, served_by: anchor, model }: NamedSlotConfig): boolean {
  return enabled && anchor === null && model.default !== null
}

function rowOf (slot: NamedSlotConfig): StackSlot {
  const { extra_args: args } = slot.server
  return {
    slot: slot.name,
    model: slot.model.default,
    type: slot.type === 'llm' ? null : slot.type,
    profile: slot.profile,
    device: slot.device ?? null,
    provider: slot.provider,
    role: slot.role,
    vision: slot.vision,
    mtp: slot.mtp,
    enable_thinking: slot.enable_thinking,
    server_extra_args: args.length === 0 ? null : args,
    capabilities: []
  }
}
