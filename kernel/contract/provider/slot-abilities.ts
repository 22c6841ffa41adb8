import type { Model } from '../schemas/model-row.js'
import type { NamedSlotConfig } from '../schemas/named-slot.js'
import type { NamedProfile } from '../schemas/profile.js'

/**
 * What a request may need of an engine besides its kind: to call tools, to take images or sound in a conversation, to hold
 * an answer to a JSON schema.
 */
export const slotAbilities = ['tools', 'vision', 'audio', 'json_schema'] as const
export type SlotAbility = typeof slotAbilities[number]

/** True: the slot can. False: it certainly cannot, so such a request is refused. Left out: unknown, and the engine judges. */
export type SlotAbilities = Readonly<Partial<Record<SlotAbility, boolean>>>

/** What the abilities of a slot depend on. */
export interface AbilityInput {
  readonly slot: NamedSlotConfig
  /** The model that the slot runs, else would load; null for none, and for one that is not in the registry. */
  readonly model: Model | null
  /** Its id, also of a model that the registry does not have. */
  readonly modelId: string | null
  /** The profile that the slot names. */
  readonly profile: NamedProfile | null
  /** Absolute path of the projector, or null when there is none or the slot's `vision` is false. */
  readonly mmprojPath: string | null
}
