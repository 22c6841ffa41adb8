import type { ErrorCode } from '../../errors/error-codes.js'
import type { Device, SlotType } from '../../schemas/enums.js'
import type { NamedSlotConfig } from '../../schemas/named-slot.js'
import type { ConfigDraft } from '../config/config-draft.js'
import type { LaunchTrouble } from './slot-outlook.js'

export const slotRules = [
  'capacity', 'anchor', 'replicas', 'port', 'default', 'exclusivity', 'provider', 'model', 'args', 'options', 'runtime', 'profile',
  'fit'
] as const
export type SlotRule = typeof slotRules[number]

/** What is wrong with one slot among others. `param` is the key at fault, dotted. */
export interface SlotProblem {
  readonly slot: string
  readonly rule: SlotRule
  readonly code: ErrorCode
  readonly message: string
  readonly param: string | null
  readonly details: Readonly<Record<string, unknown>>
}

/** A slot that could be created. */
export interface SlotWish {
  readonly type: SlotType
  readonly device: Device
  readonly provider: string
  /** `file` is the name or path of its file, empty if unknown. Null for a slot without a model. */
  readonly model: { readonly id: string, readonly file: string } | null
}

/** The slots as they would be, and with `config` everything else that changes along with them. */
export interface SlotDraft {
  readonly config: ConfigDraft
  /** As `SlotService.create`. */
  create (name: string, config: Readonly<Record<string, unknown>>): Promise<NamedSlotConfig>
  /** As `SlotService.update`. */
  update (name: string, patch: Readonly<Record<string, unknown>>): Promise<NamedSlotConfig>
  /** Removes the file; the engine goes once that is written. */
  delete (name: string): Promise<void>
  /** The profile that a model asks for, when it suits the slot on the device, else null. */
  preferredProfile (slot: NamedSlotConfig, device: Device, modelId: string): string | null
  /**
   * The profile that was chosen for a slot, when it suits the slot as it is to be. Null for none, for the default of its
   * device and for what its model asks for.
   */
  chosenProfile (before: NamedSlotConfig, after: NamedSlotConfig): string | null
  /** What would keep the slot, as the draft has it, from coming up here. Asks the disk, and no engine and no network. */
  troubles (name: string): Promise<readonly LaunchTrouble[]>
}
