import { randomUUID } from 'node:crypto'
import { configDefaults, configOf, configProblem } from '../banks/config.js'
import { traits } from '../banks/profile.js'
import type { Core, Retained } from '../core.js'
import { noteEvent } from '../documents/document-table.js'
import { PermanentFailure } from '../operations/operation.js'
import type { Run } from '../operations/operation-queue.js'
import { findBank, overridesOf, type BankRow } from '../store/bank-table.js'
import { appendChunks, deleteDocument, findDocument, settleText, writeDocument } from '../store/document-table.js'
import { insertMemory, invalidateMemory, type FactType, type MemoryRow } from '../store/memory-table.js'
import type { Archive, JsonRow, TransferDocument, TransferFact, TransferObservation } from './archive.js'
import { mapOrNull } from './cells.js'
import { importModels, importRules } from './import-models.js'

export const conflictModes = ['skip', 'replace', 'new-id'] as const
export type ConflictMode = typeof conflictModes[number]

/** What an import did, for its operation's `result_metadata`. */
export interface Imported {
  readonly result: Readonly<Record<string, unknown>>
  /** For those who make vectors. */
  readonly retained: Retained
}

/**
 * Brings the documents of an archive into a bank. In the caller's transaction: until it is committed nothing of it is there,
 * and a cancelled one never was.
 */
export function importDocuments (core: Core, bank: BankRow, archive: Archive, onConflict: ConflictMode): Imported {
  const work = new Importing(core, bank)
  for (const document of archive.documents) work.document(document, onConflict)
  for (const observation of archive.observations) work.observation(observation)
  return work.end()
}

export interface BankParts {
  readonly data: boolean
  readonly config: boolean
  readonly onConflict: ConflictMode
}

/** Brings the parts of an archive into a bank that is there, in the caller's transaction. */
export function mergeBank (core: Core, bank: BankRow, archive: Archive, { data, config, onConflict }: BankParts): Imported {
  if (config) importConfig(core, bank, archive.rows.banks?.[0])
  const now = findBank(core.store, bank.bank_id)!
  const imported = importDocuments(core, now, data ? archive : { ...archive, documents: [], observations: [] }, onConflict)
  return withRest(core, now, archive, config, imported)
}

/** What beside memories is in an archive. In the caller's transaction. */
function withRest (core: Core, bank: BankRow, archive: Archive, config: boolean, imported: Imported): Imported {
  const models = importModels(core, bank, archive)
  const rules = config ? importRules(core, bank, archive) : { directives_imported: 0, webhooks_imported: 0 }
  return { ...imported, result: { bank_id: bank.bank_id, ...imported.result, ...models, ...rules } }
}

const FACTS_AT_ONCE = 100

/**
 * Fills a new bank that has no name yet, slice by slice, so that requests are served between them; `finish` gives it its name,
 * in the caller's transaction. Throws the signal's reason between slices.
 */
export async function fillBank (
  core: Core, stage: BankRow, archive: Archive, { data, config }: Pick<BankParts, 'data' | 'config'>, run: Pick<Run, 'signal' | 'progress'>
): Promise<{ readonly finish: (bankId: string) => Imported }> {
  const { store } = core
  store.transaction(() => { if (config) importConfig(core, stage, archive.rows.banks?.[0]) })
  const work = new Importing(core, findBank(store, stage.bank_id)!)
  const { documents, observations } = data ? archive : { documents: [], observations: [] }
  const slices = [
    ...slicesOf(documents, ({ facts }) => facts.length + 1).map(slice => () => { for (const document of slice) work.document(document, 'skip') }),
    ...slicesOf(observations, () => 1).map(slice => () => { for (const observation of slice) work.observation(observation) })
  ]
  for (const [n, write] of slices.entries()) {
    run.signal.throwIfAborted()
    run.progress('importing', n, slices.length)
    store.transaction(write)
    await new Promise(resolve => setImmediate(resolve))
  }
  return {
    finish: bankId => {
      mustBeNew(core, bankId)
      store.run('UPDATE banks SET bank_id = ?, name = CASE name WHEN ? THEN ? ELSE name END WHERE seq = ?', [bankId, stage.bank_id, bankId, stage.seq])
      const { result, retained } = work.end()
      return withRest(core, findBank(store, bankId)!, archive, config, { result, retained: { ...retained, bankId } })
    }
  }
}

export function mustBeNew ({ store }: Core, bankId: string): void {
  if (findBank(store, bankId) !== undefined) {
    throw new PermanentFailure(`Target bank '${bankId}' already exists; delete it first, or pass another target_bank_id`)
  }
}

function slicesOf<T> (all: readonly T[], weightOf: (each: T) => number): ReadonlyArray<readonly T[]> {
  const slices: T[][] = []
  let room = 0
  for (const each of all) {
    if (room <= 0) {
      slices.push([])
      room = FACTS_AT_ONCE
    }
    slices.at(-1)!.push(each)
    room -= weightOf(each)
  }
  return slices
}

function importConfig ({ store, now }: Core, bank: BankRow, row: JsonRow | undefined): void {
  if (row === undefined) return
  const given = settings(row, 'config')
  const config = Object.fromEntries(
    Object.entries(given).filter(([key, value]) => Object.hasOwn(configDefaults, key) && value !== null)
  )
  const disposition = settings(row, 'disposition')
  for (const trait of traits) if (typeof disposition[trait] === 'number') config[`disposition_${trait}`] ??= disposition[trait]
  const problem = configProblem(config)
  if (problem !== null) throw new PermanentFailure(`Invalid transfer archive: banks.json: ${problem}`)
  store.run('UPDATE banks SET name = ?, overrides = ?, updated_at = ? WHERE seq = ?', [
    typeof row.name === 'string' ? row.name : bank.name, JSON.stringify({ ...overridesOf(bank), ...config }), now(), bank.seq
  ])
}

function settings (row: JsonRow, name: string): Readonly<Record<string, unknown>> {
  const given = mapOrNull(row[name] ?? {})
  if (given === null) throw new PermanentFailure(`Invalid transfer archive: banks.json: ${name} must be an object`)
  return given
}

class Importing {
  readonly #core: Core
  readonly #bank: BankRow
  readonly #now: number
  /** Facts of the archive by document and place. */
  readonly #facts = new Map<string, number[]>()
  readonly #documents: number[] = []
  readonly #memories: number[] = []
  readonly #skipped: string[] = []
  readonly #renamed: Record<string, string> = {}
  #observations = 0
  #lostObservations = 0

  constructor (core: Core, bank: BankRow) {
    this.#core = core
    this.#bank = bank
    this.#now = core.now()
  }

  document (given: TransferDocument, onConflict: ConflictMode): void {
    const { store } = this.#core
    const before = findDocument(store, this.#bank.seq, given.id)
    if (before !== undefined && onConflict === 'skip') return void this.#skipped.push(given.id)
    if (before !== undefined && onConflict === 'replace') deleteDocument(store, before)
    const id = before !== undefined && onConflict === 'new-id' ? randomUUID() : given.id
    if (id !== given.id) this.#renamed[given.id] = id
    const params = given.retain_params
    const metadata = (params?.metadata ?? {}) as Record<string, string>
    const seq = writeDocument(
      store, this.#bank.seq, id, { tags: given.tags, metadata, retainParams: params, observationScopes: null }, this.#now
    )
    const chunks = this.#chunks(seq, given)
    if (given.created_at !== null) store.run('UPDATE documents SET created_at = ? WHERE seq = ?', [Date.parse(given.created_at), seq])
    this.#facts.set(given.id, given.facts.map(fact => this.#fact(fact, seq, chunks)))
    for (const fact of given.invalidated) {
      const memory = this.#fact(fact, seq, chunks)
      invalidateMemory(store, store.get<MemoryRow>('SELECT * FROM memories WHERE seq = ?', [memory])!, fact.invalidation_reason ?? null, this.#now)
    }
    noteEvent(store, seq, 'retain', this.#now, { facts_added: given.facts.length })
    this.#documents.push(seq)
  }

  observation (given: TransferObservation): void {
    const sources = given.sources.map(({ document_id: id, fact_index: index }) => this.#facts.get(id)?.[index])
    if (sources.length === 0 || sources.some(source => source === undefined)) return void (this.#lostObservations += 1)
    this.#observations += 1
    this.#memories.push(insertMemory(this.#core.store, this.#bank.seq, {
      document: null, chunk: null, text: given.text, context: null, factType: 'observation', entities: [], tags: given.tags, metadata: {},
      observationScopes: given.observation_scopes, ...whenOf(given), proofCount: given.proof_count,
      sources: sources as number[], ...this.#idOf(given.source_id)
    }, this.#now))
  }

  end (): Imported {
    const { seq: bank, bank_id: bankId } = this.#bank
    this.#core.store.run('UPDATE banks SET last_write_at = ?, last_document_at = ? WHERE seq = ?', [this.#now, this.#now, bank])
    return {
      result: {
        documents_imported: this.#documents.length, documents_skipped: this.#skipped.length,
        facts_imported: this.#memories.length - this.#observations,
        observations_imported: this.#observations, observations_skipped: this.#lostObservations,
        skipped_document_ids: this.#skipped,
        remapped_document_ids: this.#renamed
      },
      retained: { bank, bankId, documents: this.#documents, memories: this.#memories }
    }
  }

  /** By the index in the archive. */
  #chunks (document: number, { chunks, original_text: text }: TransferDocument): ReadonlyMap<number, number> {
    const { store } = this.#core
    const config = configOf(this.#bank)
    const rows = chunks.map(({ chunk_index: index, chunk_text: chunkText }) => ({
      index, seq: store.run('INSERT INTO chunks (document, chunk_index, text, created_at) VALUES (?, ?, ?, ?)', [document, index, chunkText, this.#now]).rowid
    }))
    if (rows.length === 0 && text !== null) {
      for (const chunk of appendChunks(store, document, text, Number(config.retain_chunk_size), this.#now)) rows.push({
        index: chunk.chunk_index, seq: chunk.seq
      })
    }
    settleText(store, document, config.store_document_text === true, this.#now)
    return new Map(rows.map(({ index, seq }) => [index, seq]))
  }

  #fact (fact: TransferFact, document: number, chunks: ReadonlyMap<number, number>): number {
    const { store } = this.#core
    const seq = insertMemory(store, this.#bank.seq, {
      document, chunk: fact.chunk_index === null ? null : chunks.get(fact.chunk_index) ?? null, text: fact.text,
      context: fact.context,
      factType: fact.fact_type as FactType, entities: fact.entities.map(name => ({ text: name })), tags: fact.tags,
      metadata: fact.metadata,
      observationScopes: fact.observation_scopes, ...whenOf(fact), ...this.#idOf(fact.source_id),
      ...fact.created_at !== null && { createdAt: Date.parse(fact.created_at) }
    }, this.#now)
    const [done, failed] = [timeOf(fact.consolidated_at), timeOf(fact.consolidation_failed_at)]
    if (done !== null || failed !== null) {
      store.run('UPDATE memories SET consolidated_at = ?, consolidation_failed_at = ? WHERE seq = ?', [done, failed, seq])
    }
    this.#memories.push(seq)
    return seq
  }

  /** The id that it had, unless a memory here has it. */
  #idOf (id: string | null): { readonly id?: string } {
    const isFree = id !== null && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id) &&
      this.#core.store.get('SELECT 1 FROM memories WHERE id = ?', [id]) === undefined
    return isFree ? { id } : {}
  }
}

function whenOf (given: Pick<TransferFact, 'occurred_start' | 'occurred_end' | 'mentioned_at' | 'event_date'>): {
  readonly occurredStart: number | null
  readonly occurredEnd: number | null
  readonly mentionedAt: number | null
} {
  const occurredStart = timeOf(given.occurred_start)
  return {
    occurredStart, occurredEnd: timeOf(given.occurred_end),
    mentionedAt: timeOf(given.mentioned_at) ?? (occurredStart === null ? timeOf(given.event_date) : null)
  }
}

function timeOf (iso: string | null): number | null {
  return iso === null ? null : Date.parse(iso)
}
