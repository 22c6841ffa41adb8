import type { NamedProfile, SlotConfig } from '../../contract/index.js'

/**
 * Whether a launch uses multi-token prediction: the slot forces it either way; under
 * Auto the profile must opt in and the model must be eligible.
 */
export function mtpEffective (slot: SlotConfig, profile: NamedProfile | null, modelEligible: boolean): boolean {
  if (slot.mtp !== null) return slot.mtp
  return profile !== null && profile.mtp && modelEligible
}
