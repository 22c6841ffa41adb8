import type { EngineProvider, SlotConfig } from '../../contract/index.js'

/** Whether a slot of this provider is of no use before it has a model. Pure. */
export function needsModel (provider: EngineProvider, slot: SlotConfig): boolean {
  return provider.needsModel && provider.carriesOnly?.(slot) !== true
}
