import { containing } from '../store/like.js'
import type { Cell, Store } from '../store/store.js'
import { TEXT_OF_D, type DocumentRow } from '../store/document-table.js'
import type { TagMode } from '../memories/tag-filter.js'

export interface DocumentFilter {
  readonly q: string | null
  readonly tags: readonly string[] | null
  readonly mode: TagMode
  readonly timeField: 'created_at' | 'updated_at'
  /** Epoch ms */
  readonly from: number | null
  readonly to: number | null
}

export type ListedDocument = Omit<DocumentRow, 'original_text' | 'observation_scopes'> & { readonly units: number, readonly in_id: number, readonly in_text: number }

/** The documents of a bank that fit, the latest first, and how many there are. */
export function listDocuments (
  store: Store, bank: number, filter: DocumentFilter, limit: number, offset: number
): { readonly total: number, readonly rows: readonly ListedDocument[] } {
  const { q, timeField, from, to } = filter
  const values: Cell[] = [bank]
  const where = ['d.bank = ?']
  const like = containing(q ?? '')
  const inId = `d.document_id LIKE ? ESCAPE '\\'`
  const inText = `coalesce(${TEXT_OF_D}, '') LIKE ? ESCAPE '\\'`
  if (q !== null) {
    where.push(`(${inId} OR ${inText})`)
    values.push(like, like)
  }
  const tags = tagClause(filter.tags, filter.mode)
  where.push(tags.clause)
  values.push(...tags.values)
  for (const [bound, sign] of [[from, '>='], [to, '<=']] as const) {
    if (bound === null) continue
    where.push(`d.${timeField} ${sign} ?`)
    values.push(bound)
  }
  const clause = where.join(' AND ')
  const { total } = store.get<{ total: number }>(`SELECT count(*) AS total FROM documents d WHERE ${clause}`, values)!
  const rows = store.all<ListedDocument>(`SELECT d.seq, d.bank, d.document_id, d.content_hash,
    d.text_length, d.tags, d.metadata, d.retain_params, d.created_at, d.updated_at, (SELECT count(*) FROM memories WHERE document = d.seq AND state = 'valid') AS units,
    ${inId} AS in_id, ${inText} AS in_text FROM documents d WHERE ${clause} ORDER BY d.updated_at DESC, d.seq DESC LIMIT ? OFFSET ?`,
  [like, like, ...values, limit, offset])
  return { total, rows }
}

/** Tags stand in a JSON list. `any` and `all` mean documents without tags, too. */
function tagClause (tags: readonly string[] | null, mode: TagMode): {
  readonly clause: string
  readonly values: readonly Cell[]
} {
  if (tags === null || (tags.length === 0 && mode !== 'exact')) return { clause: '1', values: [] }
  const has = '(SELECT count(DISTINCT value) FROM json_each(d.tags) WHERE value IN (SELECT value FROM json_each(?))) >= ?'
  const wanted = [...new Set(tags)]
  const values = [JSON.stringify(wanted), mode === 'any' || mode === 'any_strict' ? 1 : wanted.length]
  if (mode === 'exact') return { clause: `(json_array_length(d.tags) = ? AND ${has})`, values: [wanted.length, ...values] }
  return { clause: mode === 'any' || mode === 'all' ? `(d.tags = '[]' OR ${has})` : has, values }
}

/** How many valid memories of each type a document has; observations count where one of its memories is a source. */
export function factCounts (store: Store, document: number): Readonly<Record<string, number>> {
  const rows = store.all<{ fact_type: string, n: number }>(
    `SELECT fact_type, count(*) AS n FROM memories WHERE document = ? AND state = 'valid' GROUP BY fact_type`, [document])
  const { n: observations } = store.get<{ n: number }>(`SELECT count(DISTINCT s.memory) AS n FROM memory_sources s
    JOIN memories m ON m.seq = s.source WHERE m.document = ?`, [document])!
  return {
    world: 0, experience: 0, ...Object.fromEntries(rows.map(({ fact_type: type, n }) => [type, n])), observation: observations
  }
}

export const eventKinds = ['retain', 'append', 'reprocess', 'retag', 'fact_edited', 'fact_invalidated', 'fact_restored', 'consolidation'] as const
export type EventKind = typeof eventKinds[number]

export interface EventRow {
  readonly kind: EventKind
  readonly created_at: number
  readonly operation_id: string | null
  readonly fact_id: string | null
  readonly facts_added: number
  readonly facts_removed: number
}

/** Adds a line to a document's history. Called in the transaction of what it tells. */
export function noteEvent (store: Store, document: number, kind: EventKind, now: number, facts: Partial<EventRow> = {}): void {
  store.run('INSERT INTO document_events (document, kind, created_at, operation_id, fact_id, facts_added, facts_removed) VALUES (?, ?, ?, ?, ?, ?, ?)',
    [document, kind, now, facts.operation_id ?? null, facts.fact_id ?? null, facts.facts_added ?? 0, facts.facts_removed ?? 0])
}

const LAST_RETAIN = `(SELECT max(seq) FROM document_events WHERE document = ? AND kind IN ('retain', 'append', 'reprocess'))`

/** A retain that was begun before has added so many more. Called in its transaction. */
export function addToRetain (store: Store, document: number, facts: number): void {
  store.run(`UPDATE document_events SET facts_added = facts_added + ? WHERE seq = ${LAST_RETAIN}`, [facts, document])
}

/** Whether a retain in several operations has begun or added to the document, and nothing has written it anew since. */
export function isBegunBy (store: Store, document: number, parentOperation: string): boolean {
  return store.get(`SELECT 1 FROM document_events e JOIN operations o ON o.id = e.operation_id
    WHERE e.document = ? AND o.parent_id = ? AND NOT EXISTS (SELECT 1 FROM document_events later
      WHERE later.document = e.document AND later.seq > e.seq AND later.kind IN ('retain', 'reprocess'))`,
  [document, parentOperation]) !== undefined
}

/** The last line of each of these documents came of an operation. Called in the same transaction. */
export function nameOperation (store: Store, kinds: ReadonlyMap<number, EventKind | null>, operation: string): void {
  for (const [document, kind] of kinds) {
    if (kind === null) continue
    store.run('UPDATE document_events SET kind = ?, operation_id = ? WHERE seq = (SELECT max(seq) FROM document_events WHERE document = ?)',
      [kind, operation, document])
  }
}

/** The latest first. */
export function eventsOf (store: Store, document: number, limit: number, offset: number): {
  readonly total: number
  readonly rows: readonly EventRow[]
} {
  const { total } = store.get<{ total: number }>('SELECT count(*) AS total FROM document_events WHERE document = ?', [document])!
  return { total, rows: store.all<EventRow>('SELECT * FROM document_events WHERE document = ? ORDER BY seq DESC LIMIT ? OFFSET ?', [document, limit, offset]) }
}
