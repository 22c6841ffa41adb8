import type { LookupServices } from './record/slot-lookup.js'
import { requireSlot } from './record/slot-lookup.js'

type Table = Readonly<Record<string, unknown>>

/**
 * The slot file as an object, with the keys of a `[slot]` table lifted to the top. Also that of a slot whose file
 * parses and is not valid: its content is needed to repair it. Throws `slot.not_found`, `config.parse_error`.
 */
export async function readSlotFile (services: LookupServices, name: string): Promise<Table> {
  const file = await services.config.readSlotFile(name)
  if (file !== null) return hoisted(file)
  requireSlot(services, name)
  // deleted by hand a moment ago: the configuration has not noticed yet
  return {}
}

export function hoisted ({ slot, ...rest }: Table): Table {
  return typeof slot === 'object' && slot !== null && !Array.isArray(slot) ? { ...slot, ...rest } : { ...(slot === undefined ? {} : { slot }), ...rest }
}
