import { wireTime } from '../wire/times.js'
import type { MemoryRow } from '../store/memory-table.js'
import { HIDDEN, type TransferDocument, type TransferFact } from './archive.js'
import type { JsonRow } from './checked.js'
import { map } from './cells.js'

/*
 * Facts that were hidden stand in their documents here, and in a table of their own in the archives of a Hindsight server. An
 * archive from here has them in both, so that either engine hides them again.
 */

/** A hidden memory with the names of what it stands in. */
export interface HiddenMemory extends MemoryRow {
  readonly document_id: string
  readonly chunk_index: number | null
}

/** As a Hindsight server has it. Pure. */
export function hiddenRow (bankId: string, row: HiddenMemory): JsonRow {
  return {
    bank_id: bankId, document_id: row.document_id, text: row.text, context: row.context ?? '',
    event_date: wireTime(row.occurred_start ?? row.mentioned_at ?? row.created_at),
    occurred_start: wireTime(row.occurred_start), occurred_end: wireTime(row.occurred_end),
    mentioned_at: wireTime(row.mentioned_at), fact_type: row.fact_type, metadata: JSON.parse(row.metadata),
    created_at: wireTime(row.created_at), updated_at: wireTime(row.updated_at),
    tags: JSON.parse(row.tags), proof_count: row.proof_count, source_memory_ids: [],
    consolidated_at: wireTime(row.consolidated_at),
    observation_scopes: row.observation_scopes === null ? null : JSON.parse(row.observation_scopes),
    text_signals: (JSON.parse(row.entities) as string[]).join(' '),
    consolidation_failed_at: wireTime(row.consolidation_failed_at), edited_at: wireTime(row.edited_at),
    invalidation_reason: row.invalidation_reason, invalidated_at: wireTime(row.invalidated_at),
    causal_links: [], attachment_ids: [], chunk_index: row.chunk_index, entity_names: JSON.parse(row.entities)
  }
}

/**
 * Documents with the hidden facts of a table, where their archive has them nowhere else. What belongs to no document of the
 * archive is left out. Pure.
 * @param factOf reads a fact; throws what is wrong with it
 */
export function withHidden (
  documents: readonly TransferDocument[], rows: readonly JsonRow[], factOf: (row: JsonRow, at: string) => TransferFact
): readonly TransferDocument[] {
  if (rows.length === 0 || documents.some(({ invalidated }) => invalidated.length > 0)) return documents
  const facts = new Map<unknown, TransferFact[]>()
  for (const [n, row] of rows.entries()) {
    const fact = factOf({ ...row, metadata: map(row.metadata), entities: row.entity_names ?? [], causal_relations: [] }, `${HIDDEN}[${n}]`)
    const others = facts.get(row.document_id)
    if (others === undefined) facts.set(row.document_id, [fact])
    else others.push(fact)
  }
  return documents.map(document => ({ ...document, invalidated: facts.get(document.id) ?? [] }))
}
