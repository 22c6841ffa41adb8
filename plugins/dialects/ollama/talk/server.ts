import type { NamedSlotConfig, SlotService } from 'svc-gateway/plugin'

/** Who will serve a request. */
export interface Server {
  /** Name under which the gateway knows the model. */
  readonly model: string
  /** Null for an upstream, and for what nothing serves. */
  readonly slot: NamedSlotConfig | null
  /** Tokens; null if unknown. */
  readonly context: number | null
  /** Whether it puts text between two others. */
  readonly inserts: boolean
}

/** @param slot null for an upstream, and for what nothing serves */
export function serverOf (slots: SlotService, model: string, slot: string | null): Server {
  if (slot === null) return { model, slot: null, context: null, inserts: true }
  const inserts = slots.provider(slot)?.surfaces.infill !== undefined
  // few requests speak of it
  return { model, slot: slots.config(slot), get context () { return contextOf(slots, slot) }, inserts }
}

/** Tokens; null for a slot that cannot be launched as it is, or has no such bound. */
export function contextOf (slots: Pick<SlotService, 'outlook'>, slot: string): number | null {
  try {
    return slots.outlook(slot).contextSize
  } catch {
    return null
  }
}
