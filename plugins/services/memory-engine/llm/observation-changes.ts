import type { Core } from '../core.js'
import type { BankRow } from '../store/bank-table.js'
import type { NamedEntity } from '../store/entity-table.js'
import { deleteMemories, editMemory, insertMemory, replacing, rewriteUnindexed, type MemoryRow } from '../store/memory-table.js'

export interface PlannedObservation {
  readonly id: string
  /** As it is stored; null for a new one. */
  readonly before: MemoryRow | null
  readonly text: string
  readonly tags: readonly string[]
  /** Facts that it is made from, beside those that it was. */
  readonly sources: readonly MemoryRow[]
}

export interface Changes {
  /** Facts that are consolidated by this. */
  readonly facts: readonly MemoryRow[]
  readonly observations: readonly PlannedObservation[]
  readonly deletes: readonly MemoryRow[]
}

/** An observation as it was, with its sources and what it said before. */
interface Kept {
  readonly row: MemoryRow
  readonly sources: readonly number[]
  /** Of one that is deleted. */
  readonly history?: readonly Edit[]
  /** How many there were, of one that is changed. A release before kept none of both. */
  readonly edits?: number
}

interface Edit {
  readonly changed_at: number
  readonly change: string
}

interface Journal {
  readonly facts: readonly number[]
  readonly created: readonly string[]
  readonly changed: readonly Kept[]
}

const KEPT_JOURNALS = 5
/** Why a consolidation is tried again. */
export const CHANGED = 'memories were changed while they were consolidated'

/** Applies a consolidation, and keeps what was before. In the caller's transaction. Throws if memories changed meanwhile. */
export function applyChanges (core: Core, bank: BankRow, operation: string, {
  facts, observations, deletes
}: Changes): Record<string, number> {
  const { store } = core
  const now = core.now()
  const touched = [...observations.flatMap(({ before }) => before ?? []), ...deletes]
  for (const row of [...facts, ...touched]) {
    const { updated_at: at } = store.get<{ updated_at: number }>(`SELECT updated_at FROM memories WHERE seq = ? AND state = 'valid'`, [row.seq]) ?? {}
    if (at !== row.updated_at) throw new Error(CHANGED)
  }
  const journal: Journal = {
    facts: facts.map(({ seq }) => seq), created: observations.filter(({ before }) => before === null).map(({ id }) => id),
    changed: [
      ...observations.flatMap(({ before }) => before ?? [])
        .map(row => ({ ...keptOf(core, row), edits: editsOf(core, row.seq) })),
      ...deletes.map(row => ({ ...keptOf(core, row), history: historyOf(core, row.seq) }))
    ]
  }
  for (const planned of observations) writeObservation(core, bank, planned, now)
  replacing(store, 'consolidation', () => deleteMemories(store, deletes))
  for (const { seq } of facts) store.run('UPDATE memories SET consolidated_at = ?, consolidation_failed_at = NULL WHERE seq = ?', [now, seq])
  // one that came to nothing stands on none before it
  if (facts.length > 0 || touched.length > 0) keep(core, bank, operation, journal)
  return {
    observations_created: journal.created.length, observations_updated: observations.length - journal.created.length,
    observations_deleted: deletes.length
  }
}

/** With the memories that it tells of: see the triggers of step 47 of the database's form. */
function keep ({ store }: Core, bank: BankRow, operation: string, journal: Journal): void {
  const { rowid } = store.run('INSERT INTO consolidations (operation, bank, before) VALUES (?, ?, ?)', [operation, bank.seq, JSON.stringify(journal)])
  const name = (memories: readonly number[], isFact: boolean): unknown => store.run(`INSERT OR IGNORE INTO consolidation_memories (memory, consolidation, is_fact)
    SELECT value, ?, ? FROM json_each(?)`, [rowid, isFact ? 1 : 0, JSON.stringify(memories)])
  name([...journal.facts, ...journal.changed.flatMap(({ sources }) => sources)], true)
  name(journal.changed.map(({ row }) => row.seq), false)
  store.run(`DELETE FROM consolidations WHERE bank = ? AND seq NOT IN
    (SELECT seq FROM consolidations WHERE bank = ? ORDER BY seq DESC LIMIT ${KEPT_JOURNALS})`, [bank.seq, bank.seq])
}

function writeObservation ({ store }: Core, bank: BankRow, {
  id, before, text, tags, sources
}: PlannedObservation, now: number): void {
  const latest = (pick: (row: MemoryRow) => number | null): number | null => {
    const times = [...sources, ...before === null ? [] : [before]].map(pick).filter(at => at !== null)
    return times.length === 0 ? null : Math.max(...times)
  }
  const mentionedAt = latest(row => row.mentioned_at)
  if (before === null) {
    const names = new Set(sources.flatMap(row => JSON.parse(row.entities) as string[]))
    insertMemory(store, bank.seq, {
      id, document: null, chunk: null, text, context: null, factType: 'observation', entities: [...names].map(name => ({ text: name })), tags,
      metadata: {}, mentionedAt, proofCount: sources.length, sources: sources.map(({ seq }) => seq)
    }, now)
    return
  }
  editMemory(store, before, { text, mentionedAt }, now)
  for (const { seq } of sources) store.run('INSERT OR IGNORE INTO memory_sources (memory, source) VALUES (?, ?)', [before.seq, seq])
  store.run('UPDATE memories SET proof_count = (SELECT count(*) FROM memory_sources WHERE memory = ?) WHERE seq = ?', [before.seq, before.seq])
}

function keptOf ({ store }: Core, row: MemoryRow): Kept {
  const sources = store.all<{ source: number }>('SELECT source FROM memory_sources WHERE memory = ?', [row.seq])
  return { row, sources: sources.map(({ source }) => source) }
}

function historyOf ({ store }: Core, memory: number): readonly Edit[] {
  return store.all<Edit>('SELECT changed_at, change FROM memory_history WHERE memory = ? ORDER BY seq', [memory])
}

function editsOf ({ store }: Core, memory: number): number {
  return store.get<{ count: number }>('SELECT count(*) AS count FROM memory_history WHERE memory = ?', [memory])!.count
}

/** Why a consolidation cannot be undone; null if it can. */
export function undoProblem ({ store }: Core, operation: string): string | null {
  const journal = store.get<{ seq: number, bank: number, undone_at: number | null }>('SELECT seq, bank, undone_at FROM consolidations WHERE operation = ?', [operation])
  if (journal === undefined) return 'the state before it is no longer kept'
  if (journal.undone_at !== null) return 'it is already undone'
  const later = store.get<{ operation: string }>(`SELECT operation FROM consolidations WHERE bank = ? AND undone_at IS NULL AND seq > ?
    ORDER BY seq DESC LIMIT 1`, [journal.bank, journal.seq])
  return later === undefined ? null : `a later one builds on it: undo ${later.operation} first`
}

/** Takes a consolidation back: observations are what they were, and its facts open again. */
export function undoChanges (core: Core, operation: string): void {
  const { store } = core
  store.transaction(() => {
    const now = core.now()
    const { seq, bank, before } = store.get<{ seq: number, bank: number, before: string }>('SELECT seq, bank, before FROM consolidations WHERE operation = ?', [operation])!
    const { facts, created, changed } = JSON.parse(before) as Journal
    store.run('DELETE FROM consolidation_memories WHERE consolidation = ?', [seq])
    for (const id of created) deleteMemories(store, store.all<MemoryRow>('SELECT * FROM memories WHERE bank = ? AND id = ?', [bank, id]))
    for (const kept of changed) restore(core, bank, kept, now)
    for (const fact of facts) store.run('UPDATE memories SET consolidated_at = NULL WHERE seq = ?', [fact])
    store.run(`UPDATE consolidations SET undone_at = ?, before = '{}' WHERE seq = ?`, [now, seq])
  })
}

function restore (core: Core, bank: number, kept: Kept, now: number): void {
  const { store } = core
  const { row, sources } = kept
  const present = store.get<MemoryRow>('SELECT * FROM memories WHERE bank = ? AND id = ?', [bank, row.id])
  const known = sources.filter(seq => store.get('SELECT 1 FROM memories WHERE seq = ?', [seq]) !== undefined)
  const seq = present === undefined ? bringBack(core, bank, kept, known, now) : takeBack(core, present, kept, known, now)
  store.run('UPDATE memories SET edited_at = ? WHERE seq = ?', [row.edited_at, seq])
}

function bringBack ({ store }: Core, bank: number, { row, history = [] }: Kept, sources: readonly number[], now: number): number {
  const seq = insertMemory(store, bank, {
    id: row.id, document: null, chunk: null, text: row.text, context: row.context, factType: 'observation',
    entities: namedIn(row), tags: JSON.parse(row.tags) as string[],
    metadata: JSON.parse(row.metadata) as Record<string, string>,
    observationScopes: row.observation_scopes === null ? null : JSON.parse(row.observation_scopes),
    occurredStart: row.occurred_start, occurredEnd: row.occurred_end, mentionedAt: row.mentioned_at,
    proofCount: row.proof_count, sources, createdAt: row.created_at
  }, now)
  for (const { changed_at: at, change } of history) store.run('INSERT INTO memory_history (memory, changed_at, change) VALUES (?, ?, ?)', [seq, at, change])
  // earlier consolidations tell of it by the number that it had
  store.run('UPDATE consolidation_memories SET memory = ? WHERE memory = ?', [seq, row.seq])
  return seq
}

function namedIn ({ entities }: MemoryRow): readonly NamedEntity[] {
  return (JSON.parse(entities) as string[]).map(name => ({ text: name }))
}

/** What it said since was made of facts that are no sources of it any more: nothing would take it away with them. */
function takeBack (
  core: Core, present: MemoryRow, { row, edits = editsOf(core, present.seq) }: Kept, sources: readonly number[], now: number
): number {
  const { store } = core
  const edit = {
    text: row.text, context: row.context, factType: row.fact_type, entities: namedIn(row),
    occurredStart: row.occurred_start, occurredEnd: row.occurred_end, mentionedAt: row.mentioned_at
  }
  if (present.state === 'valid') editMemory(store, present, edit, now)
  else rewriteUnindexed(store, present, edit, now)
  store.run('DELETE FROM memory_history WHERE memory = ? AND seq NOT IN (SELECT seq FROM memory_history WHERE memory = ? ORDER BY seq LIMIT ?)',
    [present.seq, present.seq, edits])
  store.run('DELETE FROM memory_sources WHERE memory = ?', [present.seq])
  for (const seq of sources) store.run('INSERT OR IGNORE INTO memory_sources (memory, source) VALUES (?, ?)', [present.seq, seq])
  store.run('UPDATE memories SET proof_count = ? WHERE seq = ?', [sources.length, present.seq])
  return present.seq
}
