import { configOf } from '../banks/config.js'
import type { Core, Retained } from '../core.js'
import { noteEvent } from '../documents/document-table.js'
import type { BankRow } from '../store/bank-table.js'
import { releaseId } from '../banks/deleted.js'
import { appendChunks, settleText, writeDocument } from '../store/document-table.js'
import { insertMemory, invalidateMemory, stageMemory, type FactType, type MemoryRow, type NewMemory } from '../store/memory-table.js'
import type { TransferDocument, TransferFact, TransferObservation } from './archive.js'
import { writeChanges, writeEvents } from './histories.js'

/** What an import did, for its operation's `result_metadata`. */
export interface Imported {
  readonly result: Readonly<Record<string, unknown>>
  /** For those who make vectors. */
  readonly retained: Retained
}

/** Writes documents and observations of an archive into a bank that no path leads to, in the caller's transactions. */
export class Importing {
  readonly #core: Core
  readonly #bank: BankRow
  readonly #isStaged: boolean
  readonly #now: number
  /** Facts of the archive by document and place. */
  readonly #facts = new Map<string, number[]>()
  readonly #documents: number[] = []
  readonly #memories: number[] = []
  /** Of the document that is being written: ids of its archive that memories here had already. */
  readonly #newIds = new Map<string, string>()
  #observations = 0
  #lostObservations = 0

  /** @param isStaged the memories go to another bank: nothing finds or counts them before */
  constructor (core: Core, bank: BankRow, isStaged: boolean) {
    this.#core = core
    this.#bank = bank
    this.#isStaged = isStaged
    this.#now = core.now()
  }

  /** How many observations have a source that was not brought. */
  get lost (): number { return this.#lostObservations }

  document (given: TransferDocument): void {
    const { store } = this.#core
    const params = given.retain_params
    const metadata = (params?.metadata ?? {}) as Record<string, string>
    const facts = { tags: given.tags, metadata, retainParams: params, observationScopes: given.observation_scopes }
    const seq = writeDocument(store, this.#bank.seq, given.id, facts, this.#now)
    const chunks = this.#chunks(seq, given)
    if (given.created_at !== null) store.run('UPDATE documents SET created_at = ? WHERE seq = ?', [Date.parse(given.created_at), seq])
    this.#facts.set(given.id, given.facts.map(fact => this.#fact(fact, seq, chunks)))
    for (const fact of given.invalidated) this.#hide(this.#fact(fact, seq, chunks), fact)
    const ids = this.#newIds
    writeEvents(store, seq, given.events, id => ids.get(id) ?? id)
    ids.clear()
    if (given.events.length === 0) noteEvent(store, seq, 'retain', this.#now, { facts_added: given.facts.length })
    this.#documents.push(seq)
  }

  observation (given: TransferObservation): void {
    const sources = given.sources.map(({ document_id: id, fact_index: index }) => this.#facts.get(id)?.[index])
    if (sources.length === 0 || sources.some(source => source === undefined)) return void (this.#lostObservations += 1)
    this.#observations += 1
    const seq = this.#insert({
      document: null, chunk: null, text: given.text, context: given.context, factType: 'observation', entities: namesOf(given), tags: given.tags,
      metadata: {},
      observationScopes: given.observation_scopes, ...whenOf(given), proofCount: given.proof_count,
      sources: sources as number[], ...createdAtOf(given)
    }, given)
    this.#memories.push(seq)
    if (given.invalidated_at !== undefined) this.#hide(seq, given)
  }

  end (): Imported {
    const { seq: bank, bank_id: bankId } = this.#bank
    this.#core.store.run('UPDATE banks SET last_write_at = ?, last_document_at = ? WHERE seq = ?', [this.#now, this.#now, bank])
    return {
      result: {
        documents_imported: this.#documents.length, documents_skipped: 0,
        facts_imported: this.#memories.length - this.#observations,
        observations_imported: this.#observations, observations_skipped: this.#lostObservations,
        skipped_document_ids: [],
        remapped_document_ids: {}
      },
      retained: { bank, bankId, documents: this.#documents, kinds: new Map(), memories: this.#memories }
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
    const seq = this.#insert({
      document, chunk: fact.chunk_index === null ? null : chunks.get(fact.chunk_index) ?? null, text: fact.text,
      context: fact.context,
      factType: fact.fact_type as FactType, entities: namesOf(fact), tags: fact.tags,
      metadata: fact.metadata,
      observationScopes: fact.observation_scopes, ...whenOf(fact), ...createdAtOf(fact)
    }, fact)
    const [done, failed] = [timeOf(fact.consolidated_at), timeOf(fact.consolidation_failed_at)]
    if (done !== null || failed !== null) {
      store.run('UPDATE memories SET consolidated_at = ?, consolidation_failed_at = ? WHERE seq = ?', [done, failed, seq])
    }
    this.#memories.push(seq)
    return seq
  }

  /** With the id that it had, unless a memory here has it, and what it said before. */
  #insert (
    memory: NewMemory, { source_id: id, changes, edited_at: editedAt }: Pick<TransferFact, 'source_id' | 'changes' | 'edited_at'>
  ): number {
    const { store } = this.#core
    if (id !== null) releaseId(store, id)
    const isKept = id !== null && UUID.test(id) && store.get('SELECT 1 FROM memories WHERE id = ?', [id]) === undefined
    const write = this.#isStaged ? stageMemory : insertMemory
    const seq = write(store, this.#bank.seq, isKept ? { ...memory, id } : memory, this.#now)
    if (id !== null && !isKept) this.#newIds.set(id, this.#row(seq).id)
    if (changes !== undefined) writeChanges(store, seq, changes)
    const at = timeOf(editedAt)
    if (at !== null) store.run('UPDATE memories SET edited_at = ? WHERE seq = ?', [at, seq])
    return seq
  }

  /** As it was hidden where it comes from. */
  #hide (seq: number, given: Pick<TransferFact, 'invalidation_reason' | 'invalidated_at'>): void {
    const { store } = this.#core
    const [reason, at] = [given.invalidation_reason ?? null, timeOf(given.invalidated_at) ?? this.#now]
    if (!this.#isStaged) invalidateMemory(store, this.#row(seq), reason, this.#now)
    store.run('UPDATE memories SET invalidation_reason = ?, invalidated_at = ? WHERE seq = ?', [reason, at, seq])
  }

  #row (seq: number): MemoryRow {
    return this.#core.store.get<MemoryRow>('SELECT * FROM memories WHERE seq = ?', [seq])!
  }
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

function namesOf ({ entities }: Pick<TransferFact, 'entities'>): NewMemory['entities'] {
  return entities.map(name => ({ text: name }))
}

function createdAtOf ({ created_at: at }: Pick<TransferFact, 'created_at'>): Pick<NewMemory, 'createdAt'> {
  return at === null ? {} : { createdAt: Date.parse(at) }
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

function timeOf (iso: string | null | undefined): number | null {
  return iso === null || iso === undefined ? null : Date.parse(iso)
}
