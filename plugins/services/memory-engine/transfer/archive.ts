import { inPieces, jsonList } from '../store/turn.js'
import type { ArchivedAlias } from '../aliases/archived.js'
import type { JsonRow } from './checked.js'
import type { DocumentEvent, MemoryChange } from './histories.js'
import type { AuditRecord } from './import-records.js'
import { ZipWriter, type ZipSink } from './zip-writer.js'

export const SCHEMA_VERSION = 1

/** A fact of a document, without its vector and its id: both are made anew where it is imported. Times are ISO. */
export interface TransferFact {
  readonly text: string
  readonly source_id: string | null
  readonly fact_type: string
  readonly context: string | null
  readonly event_date: string | null
  readonly occurred_start: string | null
  readonly occurred_end: string | null
  readonly mentioned_at: string | null
  readonly metadata: Readonly<Record<string, string>>
  readonly tags: readonly string[]
  readonly observation_scopes: unknown
  readonly chunk_index: number | null
  readonly entities: readonly string[]
  readonly causal_relations: ReadonlyArray<{ readonly relation_type: string, readonly target_fact_index: number }>
  readonly created_at: string | null
  readonly consolidated_at: string | null
  readonly consolidation_failed_at: string | null
  /** Why it is hidden; null for one that is valid. Facts that are hidden stand behind the others, in `invalidated`. */
  readonly invalidation_reason?: string | null
  readonly invalidated_at?: string | null
  readonly edited_at?: string | null
  /** What it said before, the oldest first. A Hindsight server leaves it out. */
  readonly changes?: readonly MemoryChange[]
}

export interface TransferDocument {
  readonly id: string
  readonly original_text: string | null
  readonly retain_params: Readonly<Record<string, unknown>> | null
  readonly tags: readonly string[]
  /** Undefined in an archive that does not tell. */
  readonly observation_scopes: unknown
  readonly created_at: string | null
  readonly chunks: ReadonlyArray<{ readonly chunk_index: number, readonly chunk_text: string }>
  readonly facts: readonly TransferFact[]
  /** Facts that were hidden: see `hidden.ts`. */
  readonly invalidated: readonly TransferFact[]
  /** What happened to it, the oldest first; empty in an archive that does not tell. */
  readonly events: readonly DocumentEvent[]
}

/** An observation with its sources by document and place, since ids do not outlive the transfer. */
export interface TransferObservation {
  readonly source_id: string | null
  readonly text: string
  readonly context: string | null
  readonly entities: readonly string[]
  readonly created_at: string | null
  readonly edited_at: string | null
  readonly changes?: readonly MemoryChange[]
  readonly tags: readonly string[]
  readonly event_date: string | null
  readonly occurred_start: string | null
  readonly occurred_end: string | null
  readonly mentioned_at: string | null
  readonly observation_scopes: unknown
  readonly proof_count: number
  /** Both of one that is hidden alone. */
  readonly invalidation_reason?: string | null
  readonly invalidated_at?: string
  readonly sources: ReadonlyArray<{ readonly document_id: string, readonly fact_index: number }>
}

export type BankTable = 'banks' | 'mental_models' | 'directives' | 'webhooks' | 'mental_model_history'
export const bankTables: readonly BankTable[] = ['banks', 'mental_models', 'directives', 'webhooks', 'mental_model_history']
export const historyTables = ['audit_log', 'llm_requests'] as const
/** Hidden facts, as a Hindsight server has them: see `hidden.ts`. */
export const HIDDEN = 'data/invalidated_memory_units.json'
/** Observations that were hidden; a Hindsight server leaves them out. */
export const HIDDEN_OBSERVATIONS = 'invalidated_observations.json'
/** Other names of the bank; a Hindsight server leaves them out. */
export const ALIASES = 'bank_aliases.json'

export interface Archive {
  readonly type: 'documents' | 'bank'
  readonly sourceBankId: string
  readonly documents: readonly TransferDocument[]
  /** Those that were hidden stand behind the others. */
  readonly observations: readonly TransferObservation[]
  readonly rows: Readonly<Partial<Record<BankTable, readonly JsonRow[]>>>
  readonly knowledgePages: readonly JsonRow[]
  /** What was asked of the bank, the oldest first. */
  readonly records: readonly AuditRecord[]
  readonly aliases: readonly ArchivedAlias[]
}

/** What beside memories a bank is made of. */
export interface BankRest {
  readonly rows: Readonly<Partial<Record<Exclude<BankTable, 'banks'>, Iterable<JsonRow>>>>
  readonly knowledgePages: Iterable<JsonRow>
  readonly records?: readonly AuditRecord[]
  /** Undefined where they are not wanted. */
  readonly aliases?: readonly ArchivedAlias[] | undefined
}

/** Takes what a bank is made of, in this order: whatever is a list may be read as it is taken, or later. */
export interface BankSink {
  addDocument (document: TransferDocument): void
  addObservations (observations: Iterable<TransferObservation>): Promise<void>
  addHiddenObservations (observations: Iterable<TransferObservation>): Promise<void>
  /** Rows of facts that are hidden. */
  addHidden (rows: Iterable<JsonRow>): Promise<void>
  addRows (table: BankTable, rows: Iterable<JsonRow>): Promise<void>
  addKnowledge (pages: Iterable<JsonRow>): Promise<void>
  addAliases (rows: Iterable<JsonRow>): Promise<void>
  addHistory (table: typeof historyTables[number], rows: Iterable<JsonRow>): Promise<void>
}

/** Writes an archive in the layout that Hindsight reads and writes: document by document, and lists bit by bit. */
export class ArchiveWriter implements BankSink {
  readonly #zip: ZipWriter
  readonly #signal: AbortSignal
  readonly #counts: Record<string, number> = {}
  #documents = 0
  #facts = 0

  /** What waits rejects with the signal's reason, and writes nothing after that. */
  constructor (sink: ZipSink, signal: AbortSignal) {
    this.#zip = new ZipWriter(sink)
    this.#signal = signal
  }

  addDocument (document: TransferDocument): void {
    this.#json(`documents/${String(this.#documents).padStart(6, '0')}.json`, document)
    this.#documents += 1
    this.#facts += document.facts.length
  }

  async addObservations (observations: Iterable<TransferObservation>): Promise<void> {
    this.#counts.observation_count = await this.#list('observations.json', observations, false)
  }

  async addHiddenObservations (observations: Iterable<TransferObservation>): Promise<void> {
    await this.#list(HIDDEN_OBSERVATIONS, observations, false)
  }

  async addRows (table: BankTable, rows: Iterable<JsonRow>): Promise<void> {
    const count = await this.#list(`${table}.json`, rows)
    const name = table === 'banks' || table === 'mental_model_history' ? null : `${table.slice(0, -1)}_count`
    if (name !== null) this.#counts[name] = count
  }

  async addKnowledge (pages: Iterable<JsonRow>): Promise<void> {
    this.#counts.knowledge_page_count = await this.#list('knowledge_pages.json', pages, false)
  }

  async addAliases (rows: Iterable<JsonRow>): Promise<void> {
    await this.#list(ALIASES, rows, false)
  }

  async addHidden (rows: Iterable<JsonRow>): Promise<void> {
    this.#counts.invalidated_memory_count = await this.#list(HIDDEN, rows, false)
  }

  async addHistory (table: typeof historyTables[number], rows: Iterable<JsonRow>): Promise<void> {
    await this.#list(`history/${table}.json`, rows)
    this.#counts.history = 1
  }

  /** `at` is an ISO time. */
  end (type: Archive['type'], sourceBankId: string, at: string): void {
    const { history, ...counts } = this.#counts
    this.#json('manifest.json', {
      schema_version: SCHEMA_VERSION, source_bank_id: sourceBankId, exported_at: at, document_count: this.#documents,
      fact_count: this.#facts,
      observation_count: 0, mental_model_count: 0, knowledge_page_count: 0, knowledge_base_count: 0, archive_type: type,
      directive_count: 0,
      webhook_count: 0, ...counts, includes_history: history === 1, bank_rows_json_encoding: 'decoded'
    })
    this.#zip.end()
  }

  /** Returns how many there are; of none there is a file where `isAlways` says so. */
  async #list (name: string, values: Iterable<unknown>, isAlways = true): Promise<number> {
    let count = 0
    const counted = function* (): Generator<unknown> {
      for (const value of values) {
        count += 1
        yield value
      }
    }
    const texts = jsonList(counted())
    const { value: first } = texts.next()
    if (count > 0 || isAlways) await this.#zip.addPieces(name, this.#heard(inPieces(joined(first!, texts))))
    return count
  }

  async* #heard (pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const piece of pieces) {
      this.#signal.throwIfAborted()
      yield piece
    }
    this.#signal.throwIfAborted()
  }

  #json (name: string, value: unknown): void {
    this.#zip.add(name, Buffer.from(JSON.stringify(value)))
  }
}

function* joined (first: string, others: Iterable<string>): Generator<string> {
  yield first
  yield* others
}
