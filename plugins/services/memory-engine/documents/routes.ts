import { clearDocument } from '../memories/clear.js'
import { tagModes } from '../memories/tag-filter.js'
import { operationsOf } from '../operations/operations.js'
import { findBank, needBank, type BankRow } from '../store/bank-table.js'
import { chunksOf, deleteDocument, findDocument, isChanged, isLarge, settled, settledHash, type ChunkRow, type DocumentRow } from '../store/document-table.js'
import { turn } from '../store/turn.js'
import { BANK, json, WireError, type Handler, type WireCall, type WireRoute } from '../wire/answer.js'
import { anything, int, listOf, maybe, object, oneOf, optional, pageLimit, readBody, readQuery, text } from '../wire/shape.js'
import { storedTags } from '../wire/tags.js'
import { parseTime, wireTime } from '../wire/times.js'
import { chunkIdOf, readChunkId } from '../wire/chunk-id.js'
import { eventsOf, factCounts, listDocuments, type ListedDocument } from './document-table.js'
import { retag } from './retag.js'

const page = { limit: pageLimit(100), offset: optional(int({ min: 0 }), 0) }

const list: Handler = async ({ core, params, query, ignored }) => {
  const {
    q, tags, tags_match: mode, time_field: timeField, start_date: start, end_date: end, limit, offset
  } = readQuery(query, ignored, {
    q: maybe(text), tags: maybe(listOf(text)), tags_match: optional(oneOf(...tagModes), 'any_strict'),
    time_field: optional(oneOf('created_at', 'updated_at'), 'created_at'), start_date: maybe(text), end_date: maybe(text), ...page
  }, ['tags'])
  const bank = needBank(core.store, params.bank_id!)
  const filter = { q, tags, mode, timeField, from: timeOf('start_date', start), to: timeOf('end_date', end) }
  const { total, rows } = listDocuments(core.store, bank.seq, filter, limit, offset)
  const items: Array<Record<string, unknown>> = []
  for (const row of rows) {
    // its whole text is read for it: others are served in between
    if (isChanged(row)) await turn()
    items.push(itemView(bank, { ...row, content_hash: settledHash(core.store, row) }, q !== null))
  }
  return json({ items, total, limit, offset, total_is_estimate: false })
}

function timeOf (name: string, value: string | null): number | null {
  const at = value === null ? null : parseTime(value)
  if (value !== null && at === null) throw new WireError(400, `Invalid ${name}: use ISO 8601`)
  return at
}

function itemView (bank: BankRow, row: ListedDocument, isSearch: boolean): Record<string, unknown> {
  const fields = [...row.in_id === 1 ? ['id'] : [], ...row.in_text === 1 ? ['original_text'] : []]
  return {
    id: row.document_id, bank_id: bank.bank_id, content_hash: row.content_hash, created_at: wireTime(row.created_at),
    updated_at: wireTime(row.updated_at), text_length: row.text_length, memory_unit_count: row.units,
    retain_params: parsed(row.retain_params),
    document_metadata: parsed(row.metadata), tags: parsed(row.tags), matched_fields: isSearch ? fields : []
  }
}

const one: Handler = ({ core, params }) => {
  const { bank, document: found } = known(core, params)
  const document = settled(core.store, found)
  const counts = factCounts(core.store, document.seq)
  return json({
    id: document.document_id, bank_id: bank.bank_id, original_text: document.original_text, content_hash: document.content_hash,
    created_at: wireTime(document.created_at), updated_at: wireTime(document.updated_at),
    memory_unit_count: (counts.world ?? 0) + (counts.experience ?? 0), nodes_by_fact_type: counts, tags: parsed(document.tags),
    document_metadata: parsed(document.metadata), retain_params: parsed(document.retain_params),
    observation_scopes: parsed(document.observation_scopes), attachments: null
  })
}

const chunks: Handler = ({ core, params, query, ignored }) => {
  const { limit, offset } = readQuery(query, ignored, { ...page, limit: optional(int({ min: 1, max: 1000 }), 100) })
  const { bank, document } = known(core, params)
  const { total } = core.store.get<{ total: number }>('SELECT count(*) AS total FROM chunks WHERE document = ?', [document.seq])!
  const items = chunksOf(core.store, document.seq, { limit, offset }).map(each => chunkView(bank.bank_id, document, each))
  return json({ items, total, limit, offset })
}

const oneChunk: Handler = ({ core, params }) => {
  const place = readChunkId(params.chunk_id!)
  const bank = place === null ? undefined : findBank(core.store, place.bankId)
  const document = bank === undefined ? undefined : findDocument(core.store, bank.seq, place!.documentId)
  const chunk = document === undefined ? undefined
    : core.store.get<ChunkRow>('SELECT * FROM chunks WHERE document = ? AND chunk_index = ?', [document.seq, place!.index])
  if (chunk === undefined) throw new WireError(404, 'Chunk not found')
  return json(chunkView(bank!.bank_id, document!, chunk))
}

function chunkView (bankId: string, document: DocumentRow, chunk: ChunkRow): Record<string, unknown> {
  return {
    chunk_id: chunkIdOf(bankId, document.document_id, chunk.chunk_index), document_id: document.document_id, bank_id: bankId,
    chunk_index: chunk.chunk_index, chunk_text: chunk.text, created_at: wireTime(chunk.created_at), attachments: null
  }
}

const history: Handler = ({ core, params, query, ignored }) => {
  const { limit, offset } = readQuery(query, ignored, page)
  const { document } = known(core, params)
  const { total, rows } = eventsOf(core.store, document.seq, limit, offset)
  const none = { count: 0, ids: [] }
  return json({
    document_id: document.document_id, total, limit, offset,
    items: rows.map(row => ({
      document_id: document.document_id, kind: row.kind, created_at: wireTime(row.created_at), operation_id: row.operation_id,
      fact_id: row.fact_id,
      facts_added: row.facts_added, facts_removed: row.facts_removed,
      observations_created: none, observations_updated: none, observations_removed: none
    }))
  })
}

const patchBody = object({ tags: maybe(storedTags), observation_scopes: maybe(anything) })

const patch: Handler = ({ core, params, body, headers, ignored }) => {
  const { tags, observation_scopes: scopes } = readBody(body, headers, ignored, patchBody)
  const { document } = known(core, params)
  core.store.transaction(() => {
    if (tags !== null) retag(core, document, [...new Set(tags)])
    if (scopes !== null) {
      core.store.run('UPDATE documents SET observation_scopes = ? WHERE seq = ?', [JSON.stringify(scopes), document.seq])
      core.store.run('UPDATE memories SET observation_scopes = ? WHERE document = ?', [JSON.stringify(scopes), document.seq])
    }
  })
  return json({ success: true })
}

const remove: Handler = async ({ core, params }) => {
  const { bank, document } = known(core, params)
  const deleted = isLarge(core.store, document.seq) ? await clearDocument(core, bank, document.seq)
    : deleteDocument(core.store, document)
  const id = document.document_id
  return json({
    success: true, message: `Document '${id}' and ${deleted} associated memory units deleted successfully`, document_id: id,
    memory_units_deleted: deleted
  })
}

const reprocess: Handler = ({ core, params }) => {
  const { bank, document } = known(core, params)
  const { id } = operationsOf(core).submit({
    bankId: bank.bank_id, type: 'retain', itemsCount: 1, documentId: document.document_id, payload: { document: document.document_id }
  })
  return json({ success: true, operation_id: id, items_count: 1 })
}

function known (core: WireCall['core'], { bank_id: bankId, document_id: id }: WireCall['params']): { readonly bank: BankRow, readonly document: DocumentRow } {
  const bank = needBank(core.store, bankId!)
  const document = findDocument(core.store, bank.seq, id!)
  if (document === undefined) throw new WireError(404, 'Document not found')
  return { bank, document }
}

function parsed (value: string | null): unknown {
  return value === null ? null : JSON.parse(value)
}

const DOCUMENT = `${BANK}/documents/{document_id}`

export const routes: readonly WireRoute[] = [
  { method: 'GET', path: `${BANK}/documents`, handler: list },
  { method: 'GET', path: DOCUMENT, handler: one },
  { method: 'PATCH', path: DOCUMENT, handler: patch },
  { method: 'DELETE', path: DOCUMENT, handler: remove },
  { method: 'GET', path: `${DOCUMENT}/chunks`, handler: chunks },
  { method: 'GET', path: `${DOCUMENT}/history`, handler: history },
  { method: 'POST', path: `${DOCUMENT}/reprocess`, handler: reprocess },
  { method: 'GET', path: '/v1/default/chunks/{chunk_id}', handler: oneChunk },
  // blocks are kept as text
  { method: 'GET', path: `${BANK}/attachments/{attachment_id}`, handler: () => json({ detail: 'Attachment not found' }, 404) }
]
