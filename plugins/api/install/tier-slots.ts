import { type Device, type NamedSlotConfig } from 'svc-gateway/plugin'
import { installError } from './errors.js'
import type { WantedSlot } from './plan.js'
import { mainSlots, slotKindNames, slotKinds, type SlotKindName } from './slot-kinds.js'
import type { Tier } from './tiers.js'

export interface SlotOverride {
  readonly model_id?: string | undefined
  readonly device?: Device | null | undefined
  readonly profile?: string | null | undefined
}

const npu: WantedSlot = { kind: 'npu', slot: slotKinds.npu.slot, port: null, modelId: '', device: 'npu', profile: null }

/**
 * The slots of a tier, each as its manifest says unless an override says otherwise. Throws `install.pick_default_failed`
 * for an override of a slot that the tier does not have. Pure.
 */
export function tierSlots (
  tier: Tier, overrides: Readonly<Record<string, SlotOverride>>, npuOptIn: boolean
): readonly WantedSlot[] {
  const slots = tier.slots.map(({ capability: kind, model_id: modelId, device, profile }): WantedSlot =>
    ({ kind, slot: slotKinds[kind].slot, port: null, modelId, device, profile }))
  const all = npuOptIn ? withNpu(slots) : slots
  const stray = Object.keys(overrides).find(name => all.every(({ slot }) => slot !== name))
  if (stray !== undefined) {
    throw installError('install.pick_default_failed', `tier ${tier.name} has no slot '${stray}' to override; it has ${all.map(({ slot }) => slot).join(', ')}`,
      { param: 'overrides', details: { slot: stray } })
  }
  return all.map(wanted => overridden(wanted, overrides[wanted.slot] ?? {}))
}

/** With a slot on the NPU, if there is none among them. Pure. */
export function withNpu (slots: readonly WantedSlot[]): readonly WantedSlot[] {
  return slots.some(({ kind }) => kind === 'npu') ? slots : [...slots, npu]
}

function overridden (wanted: WantedSlot, { model_id: modelId, device, profile }: SlotOverride): WantedSlot {
  return {
    ...wanted,
    ...(modelId === undefined ? {} : { modelId }),
    ...(device === undefined ? {} : { device }),
    ...(profile === undefined ? {} : { profile })
  }
}

/**
 * What an automatic first run makes of a tier: a slot to chat with unless there is one, one for
 * code where an agent will use it. The rest becomes defaults of the capability overlay, for the operator to switch on. Pure.
 */
export function automatic (
  all: readonly WantedSlot[], { slotNames, agent }: { readonly slotNames: readonly string[], readonly agent: boolean }
): { readonly slots: readonly WantedSlot[], readonly defaults: readonly WantedSlot[] } {
  const hasMain = slotNames.some(name => mainSlots.includes(name))
  const made: readonly SlotKindName[] = [...(hasMain ? [] : ['chat.primary' as const]), ...(agent ? ['chat.coder' as const] : []), 'npu']
  return {
    slots: all.filter(({ kind }) => made.includes(kind)),
    defaults: all.filter(({ kind }) => slotKinds[kind].child !== null)
  }
}

/** Slots of an earlier run that still wait for their models, as they were wanted then: a new run goes on with them. Pure. */
export function waitingSlots (slots: Iterable<NamedSlotConfig>): readonly WantedSlot[] {
  return [...slots].flatMap(({ name, type, meta }) => {
    const modelId = meta?.pending_model ?? ''
    const usual = slotKindNames.find(one => slotKinds[one].slot === name)
    const kind = usual ?? slotKindNames.find(one => slotKinds[one].type === type)
    return modelId === '' || kind === undefined ? [] : [{ kind, slot: name, port: null, modelId, device: null, profile: null }]
  })
}
