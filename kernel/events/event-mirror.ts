import { activityCategories, type GatewayEvent, type NewActivity } from '../contract/index.js'

const categories: ReadonlySet<string> = new Set(activityCategories)

/** Steps of something whose beginning and end are told as well: too many for a trail that is kept for weeks. */
const PASSING = /\.progress$|^events\./

/** Has a row of its own already, under the name of who did it. */
const OWN_ROW = /^mcp\.tool\.invoked$/

/** The durable row of an event, or null for one that only the moment needs. Pure. */
export function rowOfEvent (event: GatewayEvent): NewActivity | null {
  if (PASSING.test(event.type) || OWN_ROW.test(event.type)) return null
  const prefix = event.type.split('.', 1)[0]!
  return {
    kind: 'event',
    category: categories.has(prefix) ? prefix : 'system',
    action: event.type,
    target: event.source,
    actor: 'system',
    severity: event.severity,
    message: event.message,
    after: event.data
  }
}
