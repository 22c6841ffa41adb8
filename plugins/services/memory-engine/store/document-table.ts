import { createHash } from 'node:crypto'
import { chunkText } from '../retain/chunk-text.js'
import { deleteMemories, type MemoryRow } from './memory-table.js'
import { WHOLE } from './page.js'
import { MOST_ALIKE, sameTags } from './same-tags.js'
import type { Store } from './store.js'

/** A row as it is stored: lists and maps are JSON, times milliseconds. */
export interface DocumentRow {
  readonly seq: number
  readonly bank: number
  readonly document_id: string
  /** Null where the bank does not keep the text of documents. */
  readonly original_text: string | null
  /** Null while more of the text is to come; empty where it follows from the chunks and was not read since: see `settled`. */
  readonly content_hash: string | null
  readonly text_length: number
  readonly tags: string
  readonly metadata: string | null
  readonly retain_params: string | null
  readonly observation_scopes: string | null
  readonly created_at: number
  readonly updated_at: number
}

export interface ChunkRow {
  readonly seq: number
  readonly document: number
  readonly chunk_index: number
  /** A piece of the document's text: all of them in their order are the text. */
  readonly text: string
  readonly created_at: number
}

export interface DocumentFacts {
  readonly tags: readonly string[]
  readonly metadata: Readonly<Record<string, string>>
  readonly retainParams: Readonly<Record<string, unknown>> | null
  readonly observationScopes: unknown
}

export function findDocument (store: Store, bank: number, documentId: string): DocumentRow | undefined {
  return store.get<DocumentRow>('SELECT * FROM documents WHERE bank = ? AND document_id = ?', [bank, documentId])
}

/** Makes or changes the row, without its text. Called in a transaction. Returns its number. */
export function writeDocument (store: Store, bank: number, documentId: string, facts: DocumentFacts, now: number): number {
  const columns = [JSON.stringify(facts.tags), Object.keys(facts.metadata).length === 0 ? null : JSON.stringify(facts.metadata),
    facts.retainParams === null ? null : JSON.stringify(facts.retainParams),
    facts.observationScopes === null || facts.observationScopes === undefined ? null : JSON.stringify(facts.observationScopes)]
  const known = findDocument(store, bank, documentId)
  if (known !== undefined) {
    store.run('UPDATE documents SET tags = ?, metadata = ?, retain_params = ?, observation_scopes = ?, updated_at = ? WHERE seq = ?', [...columns, now, known.seq])
    return known.seq
  }
  return store.run(
    `INSERT INTO documents (bank, document_id, text_length, tags, metadata, retain_params, observation_scopes, created_at, updated_at)
     VALUES (?, ?, 0, ?, ?, ?, ?, ?, ?)`, [bank, documentId, ...columns, now, now]).rowid
}

/** The chunks of a document, first to last. */
export function chunksOf (store: Store, document: number, { limit, offset } = WHOLE): readonly ChunkRow[] {
  return store.all<ChunkRow>('SELECT * FROM chunks WHERE document = ? ORDER BY chunk_index LIMIT ? OFFSET ?', [document, limit, offset])
}

/** Adds the pieces of a text behind the chunks that are there. Called in a transaction. Returns the new ones. */
export function appendChunks (store: Store, document: number, text: string, size: number, now: number): readonly ChunkRow[] {
  const { next } = store.get<{ next: number }>('SELECT coalesce(max(chunk_index) + 1, 0) AS next FROM chunks WHERE document = ?', [document])!
  return chunkText(text, size).map((piece, i) => {
    const { rowid } = store.run('INSERT INTO chunks (document, chunk_index, text, created_at) VALUES (?, ?, ?, ?)', [document, next + i, piece, now])
    return { seq: rowid, document, chunk_index: next + i, text: piece, created_at: now }
  })
}

/** Length, hash and, where the bank keeps it, the text follow from the chunks. Called in a transaction. */
export function settleText (store: Store, document: number, keepsText: boolean, now: number): void {
  const text = chunksOf(store, document).map(chunk => chunk.text).join('')
  store.run('UPDATE documents SET original_text = ?, content_hash = ?, text_length = ?, updated_at = ? WHERE seq = ?',
    [keepsText ? text : null, createHash('sha256').update(text).digest('hex'), text.length, now, document])
}

/**
 * The text was added to, or lost a part: it is put together when it is read, as otherwise a document that grows piece by piece
 * would cost the square of its length. Called in a transaction.
 */
export function changeText (store: Store, document: number, keepsText: boolean, length: number, now: number): void {
  store.run('UPDATE documents SET original_text = ?, content_hash = ?, text_length = ?, updated_at = ? WHERE seq = ?',
    [keepsText ? '' : null, UNREAD, length, now, document])
}

/** In the place of a hash. */
const UNREAD = ''

/** The text of a document in SQL, null where its bank keeps none. */
export const TEXT_OF_D = `CASE WHEN d.content_hash <> '${UNREAD}' OR d.original_text IS NULL THEN d.original_text
  ELSE (SELECT group_concat(text, '') FROM (SELECT text FROM chunks WHERE document = d.seq ORDER BY chunk_index)) END`

/** Whether `settled` has to read its text. */
export function isChanged ({ content_hash: hash }: Pick<DocumentRow, 'content_hash'>): boolean {
  return hash === UNREAD
}

/** The row with its text and hash, which are made now if it was changed since they were. */
export function settled (store: Store, document: DocumentRow): DocumentRow {
  if (!isChanged(document)) return document
  store.transaction(() => settleText(store, document.seq, document.original_text !== null, document.updated_at))
  return store.get<DocumentRow>('SELECT * FROM documents WHERE seq = ?', [document.seq])!
}

/** The same for what lists tell of a document. */
export function settledHash (store: Store, { seq, content_hash: hash }: Pick<DocumentRow, 'seq' | 'content_hash'>): string | null {
  if (hash !== UNREAD) return hash
  const document = store.get<DocumentRow>('SELECT * FROM documents WHERE seq = ?', [seq])
  // it may have been deleted meanwhile
  return document === undefined ? null : settled(store, document).content_hash
}

/** A document without its text. */
type DocumentLabel = Pick<DocumentRow, 'seq' | 'document_id' | 'tags' | 'metadata' | 'retain_params'>

/**
 * Documents of just this text, with these tags; of very many of them the newest.
 * @param isLooked whether those that were changed since they were read are looked at, too: each that is of that length is read
 */
export function documentsOf (
  store: Store, bank: number, text: string, tags: readonly string[], isLooked = true
): readonly DocumentLabel[] {
  const hash = createHash('sha256').update(text).digest('hex')
  const changed = isLooked ? store.all<DocumentRow>(
    `SELECT * FROM documents WHERE bank = ? AND content_hash = '${UNREAD}' AND text_length = ?`, [bank, text.length]) : []
  for (const document of changed) settled(store, document)
  if (store.get('SELECT 1 FROM documents WHERE bank = ? AND content_hash = ? LIMIT 1', [bank, hash]) === undefined) return []
  return sameTags('d.tags', tags).flatMap(({ sql, values }) => store.all<DocumentLabel>(
    `SELECT d.seq, d.document_id, d.tags, d.metadata, d.retain_params FROM documents d WHERE d.bank = ? AND d.content_hash = ? AND ${sql}
     ORDER BY d.seq DESC LIMIT ${MOST_ALIKE}`, [bank, hash, ...values]))
}

/** More of the text is to come: it is told when it is whole. Called in a transaction. */
export function openText (store: Store, document: number, length: number, now: number): void {
  store.run('UPDATE documents SET original_text = NULL, content_hash = NULL, text_length = ?, updated_at = ? WHERE seq = ?', [length, now, document])
}

/** What one transaction may delete of a document, in memories and in chunks. */
const MOST_AT_ONCE = 100

/** Whether it is too much for one transaction, with others waiting. */
export function isLarge (store: Store, document: number): boolean {
  return ['memories', 'chunks'].some(table => store.get(`SELECT 1 FROM ${table} WHERE document = ? LIMIT 1 OFFSET ${MOST_AT_ONCE}`, [document]) !== undefined)
}

/** With its chunks and memories, for good. Returns how many memories went. */
export function deleteDocument (store: Store, document: DocumentRow): number {
  return store.transaction(() => {
    const count = deleteMemories(store, store.all<MemoryRow>('SELECT * FROM memories WHERE document = ?', [document.seq]))
    store.run('DELETE FROM documents WHERE seq = ?', [document.seq])
    return count
  })
}

/**
 * A memory was deleted for good. If it was its chunk word for word, the chunk goes too, and with the last chunk the document:
 * otherwise the text would stay. A fact that was made from a chunk leaves its source alone. Called in a transaction.
 */
export function dropChunkOf (store: Store, memory: MemoryRow, now: number): void {
  if (memory.chunk === null || memory.document === null) return
  const chunk = store.get<ChunkRow>('SELECT * FROM chunks WHERE seq = ?', [memory.chunk])
  if (chunk === undefined || chunk.text.trim() !== memory.text.trim()) return
  store.run('DELETE FROM chunks WHERE seq = ?', [chunk.seq])
  const document = store.get<DocumentRow>('SELECT * FROM documents WHERE seq = ?', [memory.document])!
  if (store.get('SELECT 1 FROM chunks WHERE document = ?', [document.seq]) === undefined) deleteDocument(store, document)
  else changeText(store, document.seq, document.original_text !== null, document.text_length - chunk.text.length, now)
}
