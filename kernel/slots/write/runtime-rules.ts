import { isSvcError, messageOf, type ErrorCode, type NamedSlotConfig } from '../../contract/index.js'
import { invalid } from '../../config/check/shape-check.js'
import { assertRuntime, checkRuntimeOptions, namedDriver, runtimeOf } from '../plan/slot-runtime.js'
import type { Report, SlotSetContext } from './slot-rule-context.js'

/** The driver that a slot asks for exists, and takes what the slot says to it. */
export function checkRuntime (slot: NamedSlotConfig, { providers, runtime }: SlotSetContext, report: Report): void {
  if (slot.served_by !== null) return
  const driver = namedDriver(runtimeOf(slot, providers))
  try {
    assertRuntime(slot, driver, runtime)
  } catch (error) {
    if (!isSvcError(error)) throw error
    return report(slot, 'runtime', error.code as ErrorCode, messageOf(error), { param: 'runtime' })
  }
  const { problems } = checkRuntimeOptions(slot, driver, runtime)
  if (problems.length === 0) return
  const { code, message, details, param } = invalid(`slot '${slot.name}'`, problems)
  report(slot, 'runtime', code as ErrorCode, message, { details, ...(param === null ? {} : { param }) })
}
