import { ZipWriter } from './zip.js'

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
}

export interface TransferDocument {
  readonly id: string
  readonly original_text: string | null
  readonly retain_params: Readonly<Record<string, unknown>> | null
  readonly tags: readonly string[]
  readonly created_at: string | null
  readonly chunks: ReadonlyArray<{ readonly chunk_index: number, readonly chunk_text: string }>
  readonly facts: readonly TransferFact[]
  /** Facts that were hidden. Another engine leaves them out. */
  readonly invalidated: readonly TransferFact[]
}

/** An observation with its sources by document and place, since ids do not outlive the transfer. */
export interface TransferObservation {
  readonly source_id: string | null
  readonly text: string
  readonly tags: readonly string[]
  readonly event_date: string | null
  readonly occurred_start: string | null
  readonly occurred_end: string | null
  readonly mentioned_at: string | null
  readonly observation_scopes: unknown
  readonly proof_count: number
  readonly sources: ReadonlyArray<{ readonly document_id: string, readonly fact_index: number }>
}

export type BankTable = 'banks' | 'mental_models' | 'directives' | 'webhooks' | 'mental_model_history'
export const bankTables: readonly BankTable[] = ['banks', 'mental_models', 'directives', 'webhooks', 'mental_model_history']
export const historyTables = ['audit_log', 'llm_requests'] as const
export type JsonRow = Readonly<Record<string, unknown>>

export interface Archive {
  readonly type: 'documents' | 'bank'
  readonly sourceBankId: string
  readonly documents: readonly TransferDocument[]
  readonly observations: readonly TransferObservation[]
  readonly rows: Readonly<Partial<Record<BankTable, readonly JsonRow[]>>>
  readonly knowledgePages: readonly JsonRow[]
  readonly history: Readonly<Partial<Record<typeof historyTables[number], readonly JsonRow[]>>>
}

/** Writes an archive in the layout that Hindsight reads and writes, document by document. */
export class ArchiveWriter {
  readonly #zip = new ZipWriter()
  readonly #counts: Record<string, number> = {}
  #documents = 0
  #facts = 0

  addDocument (document: TransferDocument): void {
    this.#json(`documents/${String(this.#documents).padStart(6, '0')}.json`, document)
    this.#documents += 1
    this.#facts += document.facts.length
  }

  addObservations (observations: readonly TransferObservation[]): void {
    this.#counts.observation_count = observations.length
    if (observations.length > 0) this.#json('observations.json', observations)
  }

  addRows (table: BankTable, rows: readonly JsonRow[]): void {
    this.#json(`${table}.json`, rows)
    const name = table === 'banks' || table === 'mental_model_history' ? null : `${table.slice(0, -1)}_count`
    if (name !== null) this.#counts[name] = rows.length
  }

  addKnowledge (pages: readonly JsonRow[]): void {
    this.#counts.knowledge_page_count = pages.length
    if (pages.length > 0) this.#json('knowledge_pages.json', pages)
  }

  addHistory (table: typeof historyTables[number], rows: readonly JsonRow[]): void {
    this.#json(`history/${table}.json`, rows)
    this.#counts.history = 1
  }

  /** `at` is an ISO time. */
  end (type: Archive['type'], sourceBankId: string, at: string): Buffer {
    const { history, ...counts } = this.#counts
    this.#json('manifest.json', {
      schema_version: SCHEMA_VERSION, source_bank_id: sourceBankId, exported_at: at, document_count: this.#documents,
      fact_count: this.#facts,
      observation_count: 0, mental_model_count: 0, knowledge_page_count: 0, knowledge_base_count: 0, archive_type: type,
      directive_count: 0,
      webhook_count: 0, ...counts, includes_history: history === 1, bank_rows_json_encoding: 'decoded'
    })
    return this.#zip.end()
  }

  #json (name: string, value: unknown): void {
    this.#zip.add(name, Buffer.from(JSON.stringify(value)))
  }
}
