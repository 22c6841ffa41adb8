import { createHash, randomUUID } from 'node:crypto'
import { entitiesOf, entityNames, setEntities, sweepEntities, type NamedEntity } from './entity-table.js'
import { addToTextIndex, removeFromTextIndex, type IndexedText } from './text-index.js'
import type { Store } from './store.js'

export const factTypes = ['world', 'experience', 'observation'] as const
export type FactType = typeof factTypes[number]

/** A row as it is stored: lists and maps are JSON, times milliseconds. */
export interface MemoryRow {
  readonly seq: number
  readonly id: string
  readonly bank: number
  readonly document: number | null
  readonly chunk: number | null
  readonly text: string
  readonly context: string | null
  readonly fact_type: FactType
  readonly entities: string
  readonly tags: string
  readonly metadata: string
  readonly observation_scopes: string | null
  readonly occurred_start: number | null
  readonly occurred_end: number | null
  readonly mentioned_at: number | null
  readonly proof_count: number
  /** `staged` is one of an import that is not yet committed: nothing finds or counts it. */
  readonly state: 'valid' | 'invalidated' | 'staged'
  readonly invalidation_reason: string | null
  readonly invalidated_at: number | null
  readonly edited_at: number | null
  readonly consolidated_at: number | null
  readonly consolidation_failed_at: number | null
  readonly vector_model: number | null
  readonly created_at: number
  readonly updated_at: number
}

export interface NewMemory {
  readonly document: number | null
  readonly chunk: number | null
  readonly text: string
  readonly context: string | null
  readonly factType: FactType
  readonly entities: readonly NamedEntity[]
  readonly tags: readonly string[]
  readonly metadata: Readonly<Record<string, string>>
  readonly observationScopes?: unknown
  readonly occurredStart?: number | null
  readonly occurredEnd?: number | null
  readonly mentionedAt: number | null
  readonly proofCount?: number
  /** Memories that an observation was made from. */
  readonly sources?: readonly number[]
  /** Where it comes from another engine. A new one by default. */
  readonly id?: string
  readonly createdAt?: number
}

/** Equal for texts that differ in blanks alone. Pure. */
export function textHash (text: string): Buffer {
  return createHash('sha256').update(text.normalize('NFC').trim().replace(/\s+/g, ' ')).digest().subarray(0, 16)
}

/** What a memory's row in the text index was made from. */
function wordsOf (row: Pick<MemoryRow, 'text' | 'context' | 'entities'>): IndexedText {
  return { text: row.text, context: row.context, entities: JSON.parse(row.entities) as string[] }
}

/** Adds one with all that goes with it. Called in a transaction. Returns its number. */
export function insertMemory (store: Store, bank: number, memory: NewMemory, now: number): number {
  const { seq, names, tags } = insertRow(store, bank, memory, 'valid', now)
  addToTextIndex(store, bank, seq, { text: memory.text, context: memory.context, entities: names })
  if (memory.entities.length > 0) setEntities(store, bank, seq, memory.entities)
  setTags(store, bank, seq, tags)
  return seq
}

/** Adds the row of one that is to be found after `admitMemory`. Called in a transaction. Returns its number. */
export function stageMemory (store: Store, bank: number, memory: NewMemory, now: number): number {
  return insertRow(store, bank, memory, 'staged', now).seq
}

/** Makes a staged memory one of this bank, with all that goes with it. Called in a transaction. */
export function admitMemory (store: Store, row: MemoryRow, bank: number): void {
  const state = row.invalidated_at === null ? 'valid' : 'invalidated'
  store.run('UPDATE memories SET bank = ?, state = ? WHERE seq = ?', [bank, state, row.seq])
  embedAnyway(store, row.seq)
  if (state === 'valid') addToTextIndex(store, bank, row.seq, wordsOf(row))
  const names = JSON.parse(row.entities) as string[]
  if (names.length > 0) setEntities(store, bank, row.seq, names.map(text => ({ text })))
  setTags(store, bank, row.seq, JSON.parse(row.tags) as string[])
}

function insertRow (
  store: Store, bank: number, memory: NewMemory, state: MemoryRow['state'], now: number
): { readonly seq: number, readonly names: readonly string[], readonly tags: readonly string[] } {
  const names = entityNames(memory.entities)
  const tags = [...new Set(memory.tags)]
  const scopes = memory.observationScopes ?? null
  const { rowid } = store.run(
    `INSERT INTO memories (id, bank, document, chunk, text, text_hash, context, fact_type, entities, tags, metadata, observation_scopes,
       occurred_start, occurred_end, mentioned_at, proof_count, state, created_at, updated_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [memory.id ?? randomUUID(), bank, memory.document, memory.chunk, memory.text, textHash(memory.text), memory.context,
      memory.factType, JSON.stringify(names), JSON.stringify(tags), JSON.stringify(memory.metadata),
      scopes === null ? null : JSON.stringify(scopes), memory.occurredStart ?? null, memory.occurredEnd ?? null,
      memory.mentionedAt, memory.proofCount ?? 1, state, memory.createdAt ?? now, now])
  for (const source of memory.sources ?? []) store.run('INSERT OR IGNORE INTO memory_sources (memory, source) VALUES (?, ?)', [rowid, source])
  return { seq: rowid, names, tags }
}

export function setTags (store: Store, bank: number, memory: number, tags: readonly string[]): void {
  for (const tag of tags) store.run('INSERT OR IGNORE INTO memory_tags (bank, tag, memory) VALUES (?, ?, ?)', [bank, tag, memory])
}

export function findMemory (store: Store, bank: number, id: string): MemoryRow | undefined {
  return store.get<MemoryRow>('SELECT * FROM memories WHERE bank = ? AND id = ?', [bank, id.toLowerCase()])
}

export interface MemoryEdit {
  readonly text?: string
  readonly context?: string | null
  readonly factType?: FactType
  readonly occurredStart?: number | null
  readonly occurredEnd?: number | null
  readonly mentionedAt?: number | null
  readonly entities?: readonly NamedEntity[]
}

/** Changes a valid memory: its index row with it; another text gets another vector, and what was derived of the old one goes. */
export function editMemory (store: Store, row: MemoryRow, edit: MemoryEdit, now: number): void {
  store.transaction(() => {
    const before = { kind: 'edited', previous_text: row.text, previous_context: row.context, previous_fact_type: row.fact_type }
    store.run('INSERT INTO memory_history (memory, changed_at, change) VALUES (?, ?, ?)', [row.seq, now, JSON.stringify(before)])
    removeFromTextIndex(store, row.bank, row.seq)
    const next = rewriteUnindexed(store, row, edit, now)
    addToTextIndex(store, row.bank, row.seq, next)
    if (next.text === row.text) return
    store.run('UPDATE memories SET consolidated_at = NULL, consolidation_failed_at = NULL WHERE seq = ?', [row.seq])
    deleteDerived(store, row.seq)
  })
}

/**
 * Of one that is in no text index: it is hidden, and says this once it is valid again, or is indexed anew by the caller. Called
 * in a transaction.
 * @returns what its row in the text index is to be made from
 */
export function rewriteUnindexed (store: Store, row: MemoryRow, edit: MemoryEdit, now: number): IndexedText {
  const next = {
    text: edit.text ?? row.text,
    context: edit.context === undefined ? row.context : edit.context,
    entities: edit.entities === undefined ? JSON.parse(row.entities) as string[] : [...entityNames(edit.entities)]
  }
  store.run(
    `UPDATE memories SET text = ?, text_hash = ?, context = ?, entities = ?, fact_type = ?, occurred_start = ?, occurred_end = ?,
       mentioned_at = ?, edited_at = ?, updated_at = ? WHERE seq = ?`,
    [next.text, textHash(next.text), next.context, JSON.stringify(next.entities), edit.factType ?? row.fact_type,
      edit.occurredStart === undefined ? row.occurred_start : edit.occurredStart,
      edit.occurredEnd === undefined ? row.occurred_end : edit.occurredEnd,
      edit.mentionedAt === undefined ? row.mentioned_at : edit.mentionedAt, now, now, row.seq])
  if (edit.entities !== undefined) {
    const named = entitiesOf(store, row.seq)
    setEntities(store, row.bank, row.seq, edit.entities)
    sweepEntities(store, named)
  }
  if (next.text !== row.text) dropVector(store, row.seq)
  return next
}

/** It keeps its row and vector and is found no more. What was derived of it goes. */
export function invalidateMemory (store: Store, row: MemoryRow, reason: string | null, now: number): void {
  store.transaction(() => {
    removeFromTextIndex(store, row.bank, row.seq)
    store.run(`UPDATE memories SET state = 'invalidated', invalidation_reason = ?, invalidated_at = ?, updated_at = ? WHERE seq = ?`,
      [reason, now, now, row.seq])
    deleteDerived(store, row.seq)
  })
}

export function restoreMemory (store: Store, row: MemoryRow, now: number): void {
  store.transaction(() => {
    addToTextIndex(store, row.bank, row.seq, wordsOf(row))
    store.run(`UPDATE memories SET state = 'valid', invalidation_reason = NULL, invalidated_at = NULL, updated_at = ?,
      consolidated_at = NULL, consolidation_failed_at = NULL WHERE seq = ?`, [now, row.seq])
    embedAnyway(store, row.seq)
  })
}

/**
 * The observations that were made from it, alone or with others, and those that could come back by undoing a consolidation. The
 * others are open to the next consolidation again. Called in a transaction. Returns how many went.
 */
export function deleteDerived (store: Store, memory: number): number {
  const named = 'SELECT consolidation FROM consolidation_memories WHERE memory = ? AND is_fact = 1'
  if (store.get(named, [memory]) !== undefined) store.run(`DELETE FROM consolidations WHERE seq IN (${named})`, [memory])
  const rows = store.all<MemoryRow>(
    `SELECT * FROM memories WHERE fact_type = 'observation' AND seq IN (SELECT memory FROM memory_sources WHERE source = ?)`, [memory])
  for (const { seq } of rows) {
    store.run(`UPDATE memories SET consolidated_at = NULL WHERE consolidated_at IS NOT NULL AND seq <> ?
      AND seq IN (SELECT source FROM memory_sources WHERE memory = ?)`, [memory, seq])
  }
  return deleteMemories(store, rows)
}

/** For good: rows, index rows, vectors, tags, histories; and observations that were made from them. Called in a transaction. */
export function deleteMemories (store: Store, rows: readonly MemoryRow[]): number {
  let count = 0
  for (const row of rows) {
    if (store.get('SELECT 1 FROM memories WHERE seq = ?', [row.seq]) === undefined) continue
    count += deleteDerived(store, row.seq) + 1
    if (row.state === 'valid') removeFromTextIndex(store, row.bank, row.seq)
    const named = entitiesOf(store, row.seq)
    store.run('DELETE FROM memories WHERE seq = ?', [row.seq])
    sweepEntities(store, named)
  }
  return count
}

/**
 * What is deleted by this gives way to what was made of it, and nobody asked for its deletion: see the triggers that look at
 * `replacing`. Called in a transaction.
 */
export function replacing<T> (store: Store, kind: 'extraction' | 'consolidation', work: () => T): T {
  store.run('INSERT INTO replacing (kind) VALUES (?)', [kind])
  const result = work()
  store.run('DELETE FROM replacing')
  return result
}

/** Its text changed: it is embedded again. */
function dropVector (store: Store, memory: number): void {
  store.run('DELETE FROM vectors WHERE memory = ?', [memory])
  store.run('UPDATE memories SET vector_model = NULL, embed_tries = 0 WHERE seq = ?', [memory])
  embedAnyway(store, memory)
}

/** It was none of those that waited when an embedding was cancelled, or has another text now. */
function embedAnyway (store: Store, memory: number): void {
  store.run(`INSERT OR IGNORE INTO embed_anyway SELECT memories.seq FROM memories JOIN banks ON banks.seq = memories.bank
    WHERE memories.seq = ? AND embed_cancelled_upto >= memories.seq`, [memory])
}
