import { svcError, type EngineProvider, type NamedSlotConfig } from '../../contract/index.js'
import { checkShape, invalid, type Checked } from '../../config/check/shape-check.js'
import { checkRuntimeOptions, type RuntimeChoice } from './slot-runtime.js'

/** The `[options]` table of a slot as its provider reads it, defaults filled in; or what is wrong with it. Pure. */
export function checkOptions (slot: NamedSlotConfig, provider: EngineProvider): Checked<NamedSlotConfig['options']> {
  if (provider.slotOptions === undefined) return { value: slot.options, problems: [] }
  const checked = checkShape(provider.slotOptions, slot.options, { audience: 'client', userPath: path => ['options', ...path] })
  return checked as Checked<NamedSlotConfig['options']>
}

/** Throws `slot.config_error` for options that the provider refuses. */
export function slotOptions (slot: NamedSlotConfig, provider: EngineProvider): NamedSlotConfig['options'] {
  return checkedIn(slot, checkOptions(slot, provider))
}

/** Throws `slot.config_error` for what the driver that runs the slot is not told. */
export function runtimeOptions (
  slot: NamedSlotConfig, driver: string | null, runtimes: RuntimeChoice
): NamedSlotConfig['runtime_options'] {
  return checkedIn(slot, checkRuntimeOptions(slot, driver, runtimes))
}

function checkedIn<T> (slot: NamedSlotConfig, { value, problems }: Checked<T>): T {
  if (value !== null) return value
  const { message, details, param } = invalid(`slot '${slot.name}'`, problems)
  throw svcError('slot.config_error', message, { details: { ...details, slot: slot.name }, ...(param === null ? {} : { param }) })
}
