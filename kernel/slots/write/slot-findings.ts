import { isSvcError, messageOf, type ErrorCode, type Finding, type NamedSlotConfig } from '../../contract/index.js'
import { slotFile } from '../../config/parts/config-parts.js'
import { checkSlotSet, type SlotSetContext } from './slot-rules.js'
import type { SlotPlans } from '../plan/slot-plans.js'

/**
 * What is wrong with the slots as their files have them: the rules of every writer, which a file that was written by hand
 * went past, and what a launch would find missing. The latter is a warning for a slot that is switched off. Never rejects.
 */
export async function slotFindings (
  slots: readonly NamedSlotConfig[], context: SlotSetContext, plans: SlotPlans
): Promise<readonly Finding[]> {
  const found = checkSlotSet(slots, context).map(({ slot, code, message, param }): Finding =>
    ({ file: slotFile(slot), path: param ?? '', message, code, severity: 'error' }))
  const missing = await Promise.all(slots.filter(({ served_by: anchor }) => anchor === null).map(slot => missingOf(slot, plans)))
  const told = new Set(found.map(({ file, path }) => `${file} ${path}`))
  return [...found, ...missing.flat().filter(({ file, path }) => !told.has(`${file} ${path}`))]
}

async function missingOf (slot: NamedSlotConfig, plans: SlotPlans): Promise<readonly Finding[]> {
  const finding = (path: string, code: ErrorCode, message: string): Finding =>
    ({ file: slotFile(slot.name), path, message, code, severity: slot.enabled ? 'error' : 'warning' })
  try {
    plans.image(slot.name)
    plans.resolved(slot.name)
    return (await plans.missingFiles(slot.name)).map(({ what, path, param }) =>
      finding(param, 'slot.load_failed', `${what} cannot be read at ${path}`))
  } catch (error) {
    if (!isSvcError(error)) return [finding('', 'slot.config_error', messageOf(error))]
    const { code, details } = error
    // what a profile or the model's row says is no key of the slot's file
    const param = error.param === 'defaults.extra_args' ? 'model.default' : error.param === 'flags' ? 'profile' : error.param
    const key = Object.hasOwn(details, 'image') ? slot.container_image === null ? 'profile' : 'image' : ''
    // what requests are told: the file may be as good as ever, and a plugin gone
    const told = Object.hasOwn(details, 'providers') ? 'slot.provider_gone' : code as ErrorCode
    return [finding(param ?? key, told, messageOf(error))]
  }
}
