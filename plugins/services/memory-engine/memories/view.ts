import type { MemoryRow } from '../store/memory-table.js'
import type { Store } from '../store/store.js'
import { chunkIdOf } from '../wire/chunk-id.js'
import { wireTime } from '../wire/times.js'

/** A memory with the ids of what it belongs to. */
export interface ShownMemory extends MemoryRow {
  readonly document_id: string | null
  readonly chunk_index: number | null
}

/** Selects `ShownMemory`s, of `memories` as `m`. */
export const SHOWN = `SELECT m.*, d.document_id AS document_id, c.chunk_index AS chunk_index
  FROM memories m LEFT JOIN documents d ON d.seq = m.document LEFT JOIN chunks c ON c.seq = m.chunk`

export function namesOf (row: Pick<MemoryRow, 'entities'>): readonly string[] {
  return namesIn(row.entities)
}

/** Of a column that holds names as JSON; most hold none. */
export function namesIn (column: string): readonly string[] {
  return column === '[]' ? [] : JSON.parse(column) as string[]
}

export function chunkId (bankId: string, documentId: string | null, index: number | null): string | null {
  return documentId === null || index === null ? null : chunkIdOf(bankId, documentId, index)
}

/** What every view of a memory has. */
function common (bankId: string, row: ShownMemory) {
  return {
    id: row.id, text: row.text, context: row.context ?? '', date: wireTime(row.occurred_start ?? row.mentioned_at) ?? '',
    mentioned_at: wireTime(row.mentioned_at),
    occurred_start: wireTime(row.occurred_start), occurred_end: wireTime(row.occurred_end),
    document_id: row.document_id, chunk_id: chunkId(bankId, row.document_id, row.chunk_index),
    tags: JSON.parse(row.tags) as string[], metadata: JSON.parse(row.metadata) as Record<string, string>
  }
}

/** How it stands, which the views of one and of many have. */
function standing (row: MemoryRow) {
  return {
    state: row.state, invalidation_reason: row.invalidation_reason, invalidated_at: wireTime(row.invalidated_at),
    edited_at: wireTime(row.edited_at), consolidated_at: wireTime(row.consolidated_at),
    consolidation_failed_at: wireTime(row.consolidation_failed_at)
  }
}

/** `MemoryUnitListItem` of the wire. */
export function listItem (bankId: string, row: ShownMemory, sources: readonly string[]) {
  return {
    ...common(bankId, row), ...standing(row), fact_type: row.fact_type, entities: namesOf(row).join(', '),
    proof_count: row.proof_count, updated_at: wireTime(row.updated_at), source_memory_ids: sources
  }
}

/** One memory, as its own path shows it. `history` is always empty, as on the wire: it has a path of its own. */
export function detail (bankId: string, row: ShownMemory, sources: readonly MemoryRow[]) {
  return {
    ...common(bankId, row), ...standing(row), type: row.fact_type, entities: row.state === 'valid' ? namesOf(row) : [],
    observation_scopes: row.observation_scopes === null ? null : JSON.parse(row.observation_scopes) as unknown,
    ...row.fact_type === 'observation' ? {
      history: [], proof_count: row.proof_count,
      source_memory_ids: sources.map(({ id }) => id), source_memories: sources.map(sourceOf)
    } : {}
  }
}

function sourceOf ({ id, text, fact_type: type, context, occurred_start: start, mentioned_at: mentioned }: MemoryRow) {
  return { id, text, type, context, occurred_start: wireTime(start), mentioned_at: wireTime(mentioned) }
}

/** What an observation was made from; nothing for a fact. */
export function sourceRows (store: Store, row: MemoryRow): readonly MemoryRow[] {
  if (row.fact_type !== 'observation') return []
  return store.all<MemoryRow>('SELECT m.* FROM memory_sources s JOIN memories m ON m.seq = s.source WHERE s.memory = ? ORDER BY m.seq', [row.seq])
}

/** The ids of what observations were made from, by the observation's number. */
export function sourcesOf (store: Store, rows: ReadonlyArray<Pick<MemoryRow, 'seq' | 'fact_type'>>): ReadonlyMap<number, readonly string[]> {
  const observations = rows.filter(row => row.fact_type === 'observation').map(row => row.seq)
  if (observations.length === 0) return new Map()
  const found = store.all<{ memory: number, id: string }>(
    `SELECT s.memory AS memory, m.id AS id FROM memory_sources s JOIN memories m ON m.seq = s.source
     WHERE s.memory IN (SELECT value FROM json_each(?)) ORDER BY s.memory, m.seq`, [JSON.stringify(observations)])
  const sources = new Map<number, string[]>()
  for (const { memory, id } of found) sources.set(memory, [...sources.get(memory) ?? [], id])
  return sources
}
