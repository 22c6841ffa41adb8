import type { Core } from '../core.js'
import type { BankRow } from '../store/bank-table.js'
import { deleteMemories, editMemory, insertMemory, type MemoryRow } from '../store/memory-table.js'

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

/** An observation as it was, with its sources. */
interface Kept {
  readonly row: MemoryRow
  readonly sources: readonly number[]
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
    changed: touched.map(row => ({ row, sources: sourcesOf(core, row.seq) }))
  }
  for (const planned of observations) writeObservation(core, bank, planned, now)
  deleteMemories(store, deletes)
  for (const { seq } of facts) store.run('UPDATE memories SET consolidated_at = ?, consolidation_failed_at = NULL WHERE seq = ?', [now, seq])
  store.run('INSERT INTO consolidations (operation, bank, before) VALUES (?, ?, ?)', [operation, bank.seq, JSON.stringify(journal)])
  store.run(`DELETE FROM consolidations WHERE bank = ? AND operation NOT IN (SELECT c.operation FROM consolidations c JOIN operations o ON o.id = c.operation
    WHERE c.bank = ? ORDER BY o.seq DESC LIMIT ${KEPT_JOURNALS})`, [bank.seq, bank.seq])
  return {
    observations_created: journal.created.length, observations_updated: observations.length - journal.created.length,
    observations_deleted: deletes.length
  }
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

function sourcesOf ({ store }: Core, memory: number): readonly number[] {
  return store.all<{ source: number }>('SELECT source FROM memory_sources WHERE memory = ?', [memory]).map(({ source }) => source)
}

/** Why a consolidation cannot be undone; null if it can. */
export function undoProblem ({ store }: Core, operation: string): string | null {
  const journal = store.get<{ bank: number, undone_at: number | null }>('SELECT bank, undone_at FROM consolidations WHERE operation = ?', [operation])
  if (journal === undefined) return 'what was before it is no longer kept'
  if (journal.undone_at !== null) return 'it is undone already'
  const later = store.get<{ id: string }>(`SELECT o.id FROM consolidations c JOIN operations o ON o.id = c.operation WHERE c.bank = ? AND c.undone_at IS NULL
    AND o.seq > (SELECT seq FROM operations WHERE id = ?) ORDER BY o.seq DESC LIMIT 1`, [journal.bank, operation])
  return later === undefined ? null : `a later one stands on it: undo ${later.id} first`
}

/** Takes a consolidation back: observations are what they were, and its facts open again. */
export function undoChanges (core: Core, operation: string): void {
  const { store } = core
  store.transaction(() => {
    const now = core.now()
    const { bank, before } = store.get<{ bank: number, before: string }>('SELECT bank, before FROM consolidations WHERE operation = ?', [operation])!
    const { facts, created, changed } = JSON.parse(before) as Journal
    for (const id of created) deleteMemories(store, store.all<MemoryRow>('SELECT * FROM memories WHERE bank = ? AND id = ?', [bank, id]))
    for (const { row, sources } of changed) restore(core, bank, row, sources, now)
    for (const seq of facts) store.run('UPDATE memories SET consolidated_at = NULL WHERE seq = ?', [seq])
    store.run(`UPDATE consolidations SET undone_at = ?, before = '{}' WHERE operation = ?`, [now, operation])
  })
}

function restore ({ store }: Core, bank: number, row: MemoryRow, sources: readonly number[], now: number): void {
  const present = store.get<MemoryRow>('SELECT * FROM memories WHERE bank = ? AND id = ?', [bank, row.id])
  const known = sources.filter(seq => store.get('SELECT 1 FROM memories WHERE seq = ?', [seq]) !== undefined)
  if (present === undefined) {
    insertMemory(store, bank, {
      id: row.id, document: null, chunk: null, text: row.text, context: row.context, factType: 'observation',
      entities: (JSON.parse(row.entities) as string[]).map(name => ({ text: name })), tags: JSON.parse(row.tags) as string[],
      metadata: JSON.parse(row.metadata) as Record<string, string>, occurredStart: row.occurred_start,
      occurredEnd: row.occurred_end,
      mentionedAt: row.mentioned_at, proofCount: row.proof_count, sources: known, createdAt: row.created_at
    }, now)
    return
  }
  editMemory(store, present, { text: row.text, mentionedAt: row.mentioned_at }, now)
  store.run('DELETE FROM memory_sources WHERE memory = ?', [present.seq])
  for (const seq of known) store.run('INSERT OR IGNORE INTO memory_sources (memory, source) VALUES (?, ?)', [present.seq, seq])
  store.run('UPDATE memories SET proof_count = ? WHERE seq = ?', [known.length, present.seq])
}
