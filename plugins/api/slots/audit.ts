import type { ActivityLog, ActivityNote, ConfigService, NamedSlotConfig, RouteCall, SlotService } from 'svc-gateway/plugin'
import { requireSlotFile } from './record/slot-lookup.js'

export type Caller = Pick<RouteCall, 'actor' | 'requestId' | 'signal'>

export interface AuditServices {
  readonly activity: ActivityLog
  readonly slots: SlotService
}

/**
 * Writes down who did what to a slot and how it ended. `work` notes what was there before and
 * after; for verbs that change no configuration that is state and model.
 */
export function audited<T> (
  { activity }: AuditServices, caller: Caller, action: string, slot: string,
  work: (note: (learned: ActivityNote) => void) => Promise<T>
): Promise<T> {
  const row = { category: 'slot', action: `slot.${action}`, target: slot, actor: caller.actor, request_id: caller.requestId }
  return activity.audited(row, work)
}

/** A change of a slot's configuration, with the whole of it before and after; null before for a file that cannot be read. */
export function auditedEdit (
  services: AuditServices & { readonly config: ConfigService }, caller: Caller, action: string, slot: string,
  edit: () => Promise<NamedSlotConfig>
): Promise<NamedSlotConfig> {
  return audited(services, caller, action, slot, async note => {
    note({ before: requireSlotFile(services, slot) })
    const next = await edit()
    note({ after: next })
    return next
  })
}

/** A verb, with state and model before and after. */
export function auditedVerb (
  services: AuditServices, caller: Caller, action: string, slot: string, verb: () => Promise<void>
): Promise<void> {
  const look = (): Record<string, unknown> => {
    const { state, modelId } = services.slots.status(slot)
    return { state, model_id: modelId }
  }
  return audited(services, caller, action, slot, async note => {
    note({ before: look() })
    try {
      await verb()
    } finally {
      if (services.slots.names().includes(slot)) note({ after: look() })
    }
  })
}
