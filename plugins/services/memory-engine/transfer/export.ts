import { aliasesOf } from '../aliases/archived.js'
import type { Core } from '../core.js'
import { MentalModelTable } from '../models/mental-model-table.js'
import { DirectiveTable } from '../models/directive-table.js'
import type { ReflectResponse } from '../models/basis.js'
import { triggerOf } from '../models/model-view.js'
import { withTexts } from '../models/shown-basis.js'
import { dispositionOf } from '../banks/profile.js'
import { NodeTable } from '../knowledge/node-table.js'
import { PermanentFailure } from '../operations/operation.js'
import type { Run } from '../operations/operation-queue.js'
import { auditLogOf } from '../records/audit.js'
import { overridesOf, type BankRow } from '../store/bank-table.js'
import { inSlices, ROWS_AT_ONCE } from '../store/slices.js'
import { turn } from '../store/turn.js'
import { hiddenRow, type HiddenMemory } from './hidden.js'
import { readChanges, readEvents, type MemoryChange } from './histories.js'
import type { ZipSink } from './zip-writer.js'
import { chunksOf, findDocument, settled, type DocumentRow } from '../store/document-table.js'
import type { MemoryRow } from '../store/memory-table.js'
import { WebhookTable } from '../webhooks/webhook-table.js'
import { wireTime } from '../wire/times.js'
import { ArchiveWriter, historyTables, type BankSink, type TransferFact, type TransferObservation } from './archive.js'
import type { JsonRow } from './checked.js'

export interface ExportOptions {
  readonly type: 'documents' | 'bank'
  /** Null for all. */
  readonly documentIds: readonly string[] | null
  /** Documents and what was made of them. */
  readonly data: boolean
  readonly observations: boolean
  readonly knowledge: boolean
  readonly config: boolean
  readonly history: boolean
}

const DOCUMENTS_AT_ONCE = 50

/**
 * Where the facts stand in the archive that observations were made of: the numbers of their documents there, times `FACTS_MOST`,
 * and their places in those.
 */
type Places = Map<number, number>
const FACTS_MOST = 2 ** 22

/**
 * Writes the archive of a bank, or of a part of it: how much of it is in memory does not grow with the bank. Requests are served
 * between its documents; each is whole.
 */
export async function exportArchive (
  core: Core, bank: BankRow, options: ExportOptions, run: Run, sink: ZipSink, reads: Reads = () => {}
): Promise<void> {
  const archive = new ArchiveWriter(sink, run.signal)
  await readBank(core, bank, options, run, archive, reads)
  archive.end(options.type, bank.bank_id, new Date(core.now()).toISOString())
}

/** Told before documents are read, up to which number that is, and before all else, with null. */
export type Reads = (upto: number | null) => void

/** Gives all of a bank, or of a part of it, to what takes it. Rejects with the reason of the signal, between documents. */
export async function readBank (
  core: Core, bank: BankRow, options: ExportOptions, run: Run, sink: BankSink, reads: Reads = () => {}
): Promise<void> {
  const { store } = core
  const places: Places = new Map()
  if (options.data) {
    const { total } = store.get<{ total: number }>('SELECT count(*) AS total FROM documents WHERE bank = ?', [bank.seq])!
    let n = 0
    // nothing is read yet
    reads(0)
    for (const slice of documentsOf(core, bank, options.documentIds)) {
      run.progress('exporting', n, options.documentIds?.length ?? total)
      await turn()
      run.signal.throwIfAborted()
      n += slice.length
      // a client may name them in any order
      reads(options.documentIds === null ? slice.at(-1)! : null)
      for (const seq of slice) {
        const document = store.get<DocumentRow>('SELECT * FROM documents WHERE seq = ?', [seq])
        // deleted meanwhile
        if (document !== undefined) addDocument(core, sink, document, places, options.observations)
      }
    }
  }
  reads(null)
  const observations = (state: 'valid' | 'invalidated'): Iterable<TransferObservation> =>
    options.data && options.observations ? observationsOf(core, bank, places, state) : []
  await sink.addObservations(observations('valid'))
  await sink.addHiddenObservations(observations('invalidated'))
  if (options.type === 'bank' && options.data && options.documentIds === null) await sink.addHidden(hiddenOf(core, bank))
  if (options.config) await addConfig(core, sink, bank)
  if (options.knowledge) await addModels(core, sink, bank)
  if (options.history) await addHistory(core, sink, bank)
}

/** Their numbers, in slices that have something in them. */
function* documentsOf ({ store }: Core, bank: BankRow, ids: readonly string[] | null): Generator<readonly number[]> {
  if (ids !== null) {
    const documents = ids.map(id => {
      const document = findDocument(store, bank.seq, id)
      if (document === undefined) throw new PermanentFailure(`Document '${id}' not found in bank '${bank.bank_id}'`)
      return document.seq
    })
    for (let n = 0; n < documents.length; n += DOCUMENTS_AT_ONCE) yield documents.slice(n, n + DOCUMENTS_AT_ONCE)
    return
  }
  for (let after = 0; ;) {
    const rows = store.all<{ seq: number }>(`SELECT seq FROM documents WHERE bank = ? AND seq > ? ORDER BY seq LIMIT ${DOCUMENTS_AT_ONCE}`, [bank.seq, after])
    if (rows.length === 0) return
    after = rows.at(-1)!.seq
    yield rows.map(({ seq }) => seq)
  }
}

function addDocument ({ store }: Core, sink: BankSink, document: DocumentRow, places: Places, lifecycle: boolean): void {
  const chunks = chunksOf(store, document.seq)
  const indexOf = new Map(chunks.map(chunk => [chunk.seq, chunk.chunk_index]))
  const memories = store.all<MemoryRow>('SELECT * FROM memories WHERE document = ? ORDER BY seq', [document.seq])
  const valid = memories.filter(({ state }) => state === 'valid')
  if (lifecycle) {
    const isSource = new Set(store.all<{ source: number }>(
      'SELECT DISTINCT s.source FROM memories m JOIN memory_sources s ON s.source = m.seq WHERE m.document = ?', [document.seq]).map(({ source }) => source))
    for (const [index, { seq }] of valid.entries()) if (isSource.has(seq)) places.set(seq, document.seq * FACTS_MOST + index)
  }
  const changes = readChanges(store, 'document', document.seq)
  const factOf = (row: MemoryRow): TransferFact => transferFact(
    row, row.chunk === null ? null : indexOf.get(row.chunk) ?? null, lifecycle, changes.get(row.seq)
  )
  sink.addDocument({
    id: document.document_id,
    original_text: settled(store, document).original_text,
    retain_params: parsed(document.retain_params) as JsonRow | null,
    tags: parsed(document.tags) as string[],
    observation_scopes: parsed(document.observation_scopes),
    created_at: wireTime(document.created_at),
    chunks: chunks.map(chunk => ({ chunk_index: chunk.chunk_index, chunk_text: chunk.text })),
    facts: valid.map(factOf),
    invalidated: memories.filter(({ state }) => state !== 'valid').map(row => ({
      ...factOf(row), invalidation_reason: row.invalidation_reason, invalidated_at: wireTime(row.invalidated_at)
    })),
    events: readEvents(store, document.seq)
  })
}

function transferFact (
  row: MemoryRow, chunkIndex: number | null, lifecycle: boolean, changes: readonly MemoryChange[] | undefined
): TransferFact {
  return {
    text: row.text, source_id: row.id, fact_type: row.fact_type, context: row.context, event_date: wireTime(
      row.occurred_start ?? row.mentioned_at
    ),
    occurred_start: wireTime(row.occurred_start), occurred_end: wireTime(row.occurred_end),
    mentioned_at: wireTime(row.mentioned_at),
    metadata: parsed(row.metadata) as Record<string, string>, tags: parsed(row.tags) as string[],
    observation_scopes: parsed(row.observation_scopes), chunk_index: chunkIndex, entities: parsed(row.entities) as string[],
    causal_relations: [],
    created_at: wireTime(row.created_at), consolidated_at: lifecycle ? wireTime(row.consolidated_at) : null,
    consolidation_failed_at: lifecycle ? wireTime(row.consolidation_failed_at) : null, ...editsOf(row, changes)
  }
}

/** Most memories have none. Pure. */
function editsOf (row: MemoryRow, changes: readonly MemoryChange[] | undefined): Pick<TransferFact, 'edited_at' | 'changes'> {
  return {
    ...row.edited_at !== null && { edited_at: wireTime(row.edited_at) },
    ...changes !== undefined && { changes }
  }
}

/** Those whose sources are all in the archive. */
function* observationsOf (
  { store }: Core, bank: BankRow, places: Places, state: 'valid' | 'invalidated'
): Generator<TransferObservation> {
  const place = (source: number): TransferObservation['sources'][number] | null => {
    const at = places.get(source)
    if (at === undefined) return null
    const document = store.get<{ id: string }>('SELECT document_id AS id FROM documents WHERE seq = ?', [Math.floor(at / FACTS_MOST)])
    return document === undefined ? null : { document_id: document.id, fact_index: at % FACTS_MOST }
  }
  const rows = inSlices(after => store.all<MemoryRow>(`SELECT * FROM memories
    WHERE bank = ? AND fact_type = 'observation' AND state = ? AND seq > ? ORDER BY seq LIMIT ${ROWS_AT_ONCE}`, [bank.seq, state, after]))
  for (const row of rows) {
    const sources = store.all<{ source: number }>('SELECT source FROM memory_sources WHERE memory = ? ORDER BY source', [row.seq])
      .map(({ source }) => place(source))
    if (sources.length === 0 || sources.includes(null)) continue
    yield {
      source_id: row.id, text: row.text, context: row.context, entities: parsed(row.entities) as string[],
      created_at: wireTime(row.created_at), edited_at: null, ...editsOf(row, readChanges(store, 'memory', row.seq).get(row.seq)),
      tags: parsed(row.tags) as string[], event_date: wireTime(
        row.occurred_start ?? row.mentioned_at
      ),
      occurred_start: wireTime(row.occurred_start), occurred_end: wireTime(row.occurred_end),
      mentioned_at: wireTime(row.mentioned_at),
      observation_scopes: parsed(row.observation_scopes), proof_count: row.proof_count,
      ...row.invalidated_at !== null && {
        invalidation_reason: row.invalidation_reason, invalidated_at: wireTime(row.invalidated_at)
      },
      sources: sources as TransferObservation['sources']
    }
  }
}

function* hiddenOf ({ store }: Core, bank: BankRow): Generator<JsonRow> {
  const rows = inSlices(after => store.all<HiddenMemory>(`SELECT m.*, d.document_id, c.chunk_index
    FROM memories m JOIN documents d ON d.seq = m.document LEFT JOIN chunks c ON c.seq = m.chunk
    WHERE m.bank = ? AND m.state = 'invalidated' AND m.seq > ? ORDER BY m.seq LIMIT ${ROWS_AT_ONCE}`, [bank.seq, after]))
  for (const row of rows) yield hiddenRow(bank.bank_id, row)
}

/** The secrets of webhooks stay here. */
async function addConfig (core: Core, sink: BankSink, bank: BankRow): Promise<void> {
  const own = { bank_id: bank.bank_id }
  const directives = function* (): Generator<JsonRow> {
    for (const each of new DirectiveTable(core).each(bank.seq)) {
      yield {
        ...own, id: each.id, name: each.name, content: each.content, priority: each.priority, is_active: each.isActive,
        tags: each.tags,
        created_at: wireTime(each.createdAt), updated_at: wireTime(each.updatedAt)
      }
    }
  }
  const webhooks = function* (): Generator<JsonRow> {
    for (const each of new WebhookTable(core).each(bank.seq)) {
      yield {
        ...own, id: each.id, url: each.url, secret: null, event_types: each.eventTypes, enabled: each.enabled,
        http_config: each.httpConfig,
        created_at: wireTime(each.createdAt), updated_at: wireTime(each.updatedAt)
      }
    }
  }
  await sink.addRows('banks', [settingsRow(bank)])
  await sink.addRows('directives', directives())
  await sink.addRows('webhooks', webhooks())
  await sink.addAliases(aliasesOf(core.store, bank))
}

/** Name, character and settings of a bank. Pure. */
export function settingsRow (bank: BankRow): JsonRow {
  return {
    bank_id: bank.bank_id, name: bank.name, disposition: dispositionOf(bank), config: overridesOf(bank),
    created_at: wireTime(bank.created_at), updated_at: wireTime(bank.updated_at)
  }
}

async function addModels (core: Core, sink: BankSink, bank: BankRow): Promise<void> {
  const own = { bank_id: bank.bank_id }
  const table = new MentalModelTable(core)
  const models = function* (): Generator<JsonRow> {
    for (const each of table.each(bank.seq)) {
      yield {
        ...own, id: each.id, name: each.name, source_query: each.sourceQuery, content: each.content, tags: each.tags,
        max_tokens: each.maxTokens, trigger: triggerOf(each.settings),
        reflect_response: withTexts(core.store, bank, each, each.reflectResponse),
        last_refreshed_at: wireTime(each.lastRefreshedAt),
        last_memory_seen_at: wireTime(each.lastMemorySeenAt), last_full_refreshed_at: wireTime(each.lastFullRefreshedAt),
        created_at: wireTime(each.createdAt)
      }
    }
  }
  const history = function* (): Generator<JsonRow> {
    for (const model of table.each(bank.seq)) {
      for (const { changedAt, change } of table.changesOf(model.seq)) {
        const before = withTexts(core.store, bank, model, (change.previous_reflect_response ?? null) as ReflectResponse | null)
        const content = { ...change, previous_reflect_response: before }
        yield { ...own, mental_model_id: model.id, changed_at: wireTime(changedAt), content }
      }
    }
  }
  const pages = function* (): Generator<JsonRow> {
    const nodes = new NodeTable(core)
    for (const node of nodes.nodes(bank.seq)) {
      yield {
        id: node.id, parent_id: node.parent === null ? null : nodes.bySeq(node.parent)?.id ?? null, kind: node.kind,
        name: node.name, mental_model_id: node.modelId, sort_order: node.sortOrder, managed: node.managed,
        created_at: wireTime(node.createdAt), updated_at: wireTime(node.updatedAt)
      }
    }
  }
  await sink.addRows('mental_models', models())
  await sink.addRows('mental_model_history', history())
  await sink.addKnowledge(pages())
}

/** Both are bounded for each bank. */
async function addHistory (core: Core, sink: BankSink, bank: BankRow): Promise<void> {
  const { store } = core
  auditLogOf(core).flush()
  const rows = {
    audit_log: store.all<JsonRow>('SELECT id, bank_id, action, transport, started_at, duration_ms FROM audit_log WHERE bank_id = ? ORDER BY seq', [bank.bank_id]),
    llm_requests: store.all<JsonRow>('SELECT id, operation, scope, call_type, model, status, started_at, duration_ms, input_tokens, output_tokens FROM model_calls WHERE bank = ? ORDER BY seq', [bank.seq])
  }
  for (const table of historyTables) {
    await sink.addHistory(table, rows[table].map(row => ({
      ...row, bank_id: bank.bank_id, started_at: wireTime(Number(row.started_at))
    })))
  }
}

function parsed (value: string | null): unknown {
  return value === null ? null : JSON.parse(value)
}
