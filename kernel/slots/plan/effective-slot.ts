import type { Device, EngineProvider, Model, NamedProfile, NamedSlotConfig } from '../../contract/index.js'

/** A slot with everything its file leaves open filled in. */
export interface EffectiveSlot {
  readonly slot: NamedSlotConfig
  readonly provider: EngineProvider
  readonly device: Device
  readonly profile: NamedProfile | null
  readonly model: Model | null
}
