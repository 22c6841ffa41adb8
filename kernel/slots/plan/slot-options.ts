import type { EngineProvider, NamedSlotConfig } from '../../contract/index.js'
import { checkShape, type Checked } from '../../config/check/shape-check.js'

/** The `[options]` table of a slot as its provider reads it, defaults filled in; or what is wrong with it. Pure. */
export function checkOptions (slot: NamedSlotConfig, provider: EngineProvider): Checked<NamedSlotConfig['options']> {
  if (provider.slotOptions === undefined) return { value: slot.options, problems: [] }
  const checked = checkShape(provider.slotOptions, slot.options, { audience: 'client', userPath: path => ['options', ...path] })
  return checked as Checked<NamedSlotConfig['options']>
}
