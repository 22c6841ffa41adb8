import { severities, type EventFilter, type GatewayEvent } from '../contract/index.js'
import { matchesGlob } from './type-glob.js'

/** Tells a reader that events are missing; it passes every filter. */
export const GAP_TYPE = 'events.gap'

/** Whether an event passes type and severity of a filter. `since` and `limit` are for the reader to apply. Pure. */
export function passes (event: GatewayEvent, filter: EventFilter): boolean {
  if (event.type === GAP_TYPE) return true
  if (filter.severity !== undefined && severities.indexOf(event.severity) < severities.indexOf(filter.severity)) return false
  return filter.type === undefined || matchesGlob(filter.type, event.type)
}

/** `lastId` is the id of the newest event that is missing, so that a reader may go on from there. */
export function gapEvent (lastId: number, ts: string, dropped: number): GatewayEvent {
  return Object.freeze({
    id: lastId, ts, type: GAP_TYPE, severity: 'warn', source: 'system',
    message: `${dropped} events were lost; reload the state`, data: Object.freeze({ dropped })
  })
}
