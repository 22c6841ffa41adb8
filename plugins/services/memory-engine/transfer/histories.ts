import { eventKinds, type EventKind } from '../documents/document-table.js'
import { factTypes, type FactType } from '../store/memory-table.js'
import type { Store } from '../store/store.js'
import { wireTime } from '../wire/times.js'
import { array, moment, object, oneOf, optional, text, whole } from './checked.js'

/** An edit of a memory: what it said before. Times are ISO. */
export interface MemoryChange {
  readonly changed_at: string
  readonly kind: 'edited'
  readonly previous_text: string
  readonly previous_context: string | null
  readonly previous_fact_type: FactType
}

/** A line in the history of a document. Operations stay where they are, and so does which one it was. */
export interface DocumentEvent {
  readonly kind: EventKind
  readonly created_at: string
  /** The id of a memory as its archive has it. */
  readonly fact_id: string | null
  readonly facts_added: number
  readonly facts_removed: number
}

interface ChangeRow {
  readonly memory: number
  readonly changed_at: number
  readonly change: string
}

/** Changes of memories by their numbers: of those of a document, or of one. The oldest first. */
export function readChanges (store: Store, of: 'document' | 'memory', seq: number): ReadonlyMap<number, readonly MemoryChange[]> {
  const where = of === 'memory' ? 'memory = ?' : 'memory IN (SELECT seq FROM memories WHERE document = ?)'
  const rows = store.all<ChangeRow>(`SELECT memory, changed_at, change FROM memory_history WHERE ${where} ORDER BY memory, seq`, [seq])
  const changes = new Map<number, MemoryChange[]>()
  for (const { memory, changed_at: at, change } of rows) {
    const one = { changed_at: wireTime(at), ...JSON.parse(change) as object } as MemoryChange
    const others = changes.get(memory)
    if (others === undefined) changes.set(memory, [one])
    else others.push(one)
  }
  return changes
}

/** The oldest first. */
export function readEvents (store: Store, document: number): readonly DocumentEvent[] {
  const rows = store.all<Omit<DocumentEvent, 'created_at'> & { readonly created_at: number }>(
    'SELECT kind, created_at, fact_id, facts_added, facts_removed FROM document_events WHERE document = ? ORDER BY seq', [document])
  return rows.map(row => ({ ...row, created_at: wireTime(row.created_at)! }))
}

/** In the caller's transaction, as the others. */
export function writeChanges (store: Store, memory: number, changes: readonly MemoryChange[]): void {
  for (const { changed_at: at, ...change } of changes) {
    store.run('INSERT INTO memory_history (memory, changed_at, change) VALUES (?, ?, ?)', [memory, Date.parse(at), JSON.stringify(change)])
  }
}

/**
 * In place of the lines that came of bringing the document.
 * @param idOf the id that a memory of the archive has here
 */
export function writeEvents (
  store: Store, document: number, events: readonly DocumentEvent[], idOf: (id: string) => string
): void {
  store.run('DELETE FROM document_events WHERE document = ?', [document])
  for (const { kind, created_at: at, fact_id: id, facts_added: added, facts_removed: removed } of events) {
    store.run('INSERT INTO document_events (document, kind, created_at, fact_id, facts_added, facts_removed) VALUES (?, ?, ?, ?, ?, ?)',
      [document, kind, Date.parse(at), id === null ? null : idOf(id), added, removed])
  }
}

/** Of an archive, as all that follows. Throws what is wrong with it, and where. */
export function changesOf (value: unknown, at: string): readonly MemoryChange[] {
  return array(value ?? [], at).map((each, n) => {
    const [place, row] = [`${at}[${n}]`, object(each, `${at}[${n}]`)]
    return {
      changed_at: moment(row.changed_at, `${place}.changed_at`),
      kind: oneOf(row.kind, ['edited'], `${place}.kind`),
      previous_text: text(row.previous_text, `${place}.previous_text`),
      previous_context: optional(row.previous_context, `${place}.previous_context`),
      previous_fact_type: oneOf(row.previous_fact_type, factTypes, `${place}.previous_fact_type`)
    }
  })
}

export function eventsOf (value: unknown, at: string): readonly DocumentEvent[] {
  return array(value ?? [], at).map((each, n) => {
    const [place, row] = [`${at}[${n}]`, object(each, `${at}[${n}]`)]
    return {
      kind: oneOf(row.kind, eventKinds, `${place}.kind`),
      created_at: moment(row.created_at, `${place}.created_at`),
      fact_id: optional(row.fact_id, `${place}.fact_id`),
      facts_added: whole(row.facts_added ?? 0, `${place}.facts_added`),
      facts_removed: whole(row.facts_removed ?? 0, `${place}.facts_removed`)
    }
  })
}
