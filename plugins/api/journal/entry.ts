import type { GatewayEvent } from 'svc-gateway/plugin'
import type { JournalEntry, JournalQuery } from './schemas.js'

const EVERYTHING: ReadonlySet<string> = new Set(['merged', 'all', 'svc'])

/** The event in the journal's envelope. Pure. */
export function entryOf ({ id, ts, type, severity, source, message, data }: GatewayEvent): JournalEntry {
  return { id, ts, source, level: severity, msg: message, slot: slotOf(source, data), data: { ...data, type, source } }
}

/** Whether an entry is wanted. A gap is always told. Pure. */
export function isWanted (entry: JournalEntry, { source, slot, level, q }: Omit<JournalQuery, 'limit' | 'since'>): boolean {
  if (entry.data.type === 'events.gap') return true
  if (!EVERYTHING.has(source) && entry.source !== source && !(source === 'slot' && entry.source.startsWith('slot:'))) return false
  if (slot !== undefined && entry.slot !== slot) return false
  if (level !== undefined && entry.level !== level) return false
  return q === undefined || entry.msg.toLowerCase().includes(q.toLowerCase())
}

function slotOf (source: string, data: Readonly<Record<string, unknown>>): string | null {
  if (source.startsWith('slot:')) return source.slice('slot:'.length)
  return typeof data.slot === 'string' ? data.slot : null
}
