import type { GatewayEvent, SlotState } from '../../kernel/contract/index.js'
import { isLegal, isServing } from '../../kernel/slots/schedule/slot-machine.js'

/**
 * Plays the `slot.state` events of a run through the table of transitions. Returns what does not fit: a step that the
 * table does not have, a step that does not start where the last one ended, a gap in the ids.
 */
export function replay (events: readonly GatewayEvent[]): readonly string[] {
  const problems: string[] = []
  const states = new Map<string, SlotState>()
  for (const event of events) {
    if (event.type === 'events.gap') problems.push(`${event.message} (id ${event.id})`)
    if (event.type !== 'slot.state') continue
    const { slot, from, to } = event.data as { slot: string, from: SlotState, to: SlotState }
    const last = states.get(slot) ?? 'offline'
    if (!isLegal(from, to)) problems.push(`${slot}: ${from} -> ${to} is no transition (event ${event.id})`)
    // requests flip a slot between its serving states without a word in the journal
    if (last !== from && !(isServing(last) && isServing(from))) problems.push(`${slot}: was ${last}, went from ${from} to ${to} (event ${event.id})`)
    states.set(slot, to)
  }
  return problems
}
