import { randomUUID } from 'node:crypto'
import { configOf } from '../banks/config.js'
import type { Core, Retained } from '../core.js'
import type { BankRow } from '../store/bank-table.js'
import { appendChunks, changeText, documentsOf, findDocument, openText, settleText, writeDocument, type ChunkRow } from '../store/document-table.js'
import { deleteMemories, insertMemory, textHash, type MemoryRow } from '../store/memory-table.js'
import { MOST_ALIKE } from '../store/same-tags.js'
import type { Store } from '../store/store.js'
import { madeOf } from './made.js'
import { memoryOf } from './same-text.js'
import type { RetainItem } from './request.js'

/**
 * Keeps these items, in one transaction: when it returns they are durable. After the last piece of a text that comes in several,
 * `dropReplaced` takes away what the document said before. Without a model a text is one memory for each of
 * its chunks, of type `world`.
 * @param isKnown asked just before the item of that place is kept; it is left out then
 */
export function retain (
  core: Core, bank: BankRow, items: readonly RetainItem[], isKnown: (place: number) => boolean = () => false
): Retained {
  const { store, hooks } = core
  const retained = store.transaction(() => {
    const work = new Retaining(core, bank)
    let known = 0
    for (const [place, item] of items.entries()) {
      if (isKnown(place)) known++
      else work.take(item)
    }
    const result = work.finish(items.length > 0 && known === items.length)
    for (const listener of hooks.retaining) listener(result)
    return result
  })
  for (const listener of hooks.retained) listener(retained)
  return retained
}

/** Deletes what a document's new text does not say any more, and returns how many went. Called in a transaction. */
export function dropReplaced (store: Store, document: number, most = -1): number {
  return deleteMemories(store, store.all<MemoryRow>(
    'SELECT * FROM memories WHERE document = ? AND chunk IS NULL AND document IS NOT NULL LIMIT ?', [document, most]))
}

class Retaining {
  readonly #core: Core
  readonly #bank: BankRow
  readonly #now: number
  readonly #chunkSize: number
  readonly #keepsText: boolean
  /** More of them is to come. */
  readonly #open = new Set<number>()
  readonly #kinds = new Map<number, 'retain' | 'append' | null>()
  readonly #memories: number[] = []

  constructor (core: Core, bank: BankRow) {
    const config = configOf(bank)
    this.#core = core
    this.#bank = bank
    this.#now = core.now()
    this.#chunkSize = Number(config.retain_chunk_size)
    this.#keepsText = config.store_document_text === true
  }

  take (item: RetainItem): void {
    if (item.documentId === null && this.#isKnown(item)) return
    const { store } = this.#core
    const documentId = item.documentId ?? randomUUID()
    const before = findDocument(store, this.#bank.seq, documentId)
    // it was deleted meanwhile, and does not come back
    if (item.goesOn === true && before === undefined) return
    // items of one request that name the same document follow each other in it
    const appends = before !== undefined && (item.goesOn === true || item.updateMode === 'append' || this.#kinds.has(before.seq))
    const tags = appends ? [...new Set([...JSON.parse(before.tags) as string[], ...item.tags])] : item.tags
    const document = writeDocument(store, this.#bank.seq, documentId, {
      tags, metadata: item.metadata, retainParams: paramsOf(item), observationScopes: item.observationScopes
    }, this.#now)
    if (!this.#kinds.has(document)) this.#kinds.set(document, item.goesOn === true ? null : appends ? 'append' : 'retain')
    const { isFirst = true, isLast = true } = item.piece ?? {}
    if (before !== undefined && !appends) store.run('DELETE FROM chunks WHERE document = ?', [document])
    const text = appends && isFirst && before.text_length > 0 ? `\n\n${item.content}` : item.content
    for (const chunk of appendChunks(store, document, text, this.#chunkSize, this.#now)) {
      if (item.updateMode === 'append' || !this.#stays(document, chunk, item)) this.#add(document, chunk, item)
    }
    const length = (appends ? before.text_length : 0) + text.length
    if (isLast) {
      this.#open.delete(document)
      if (appends) changeText(store, document, this.#keepsText, length, this.#now)
      else settleText(store, document, this.#keepsText, this.#now)
    } else {
      this.#open.add(document)
      openText(store, document, length, this.#now)
    }
    if (before !== undefined && !appends && isLast) dropReplaced(store, document)
  }

  finish (isAllKnown: boolean): Retained {
    const { seq, bank_id: bankId } = this.#bank
    if (!isAllKnown) this.#core.store.run('UPDATE banks SET last_write_at = ?, last_document_at = ? WHERE seq = ?', [this.#now, this.#now, seq])
    const documents = [...this.#kinds.keys()].filter(each => !this.#open.has(each))
    return { bank: seq, bankId, documents, kinds: this.#kinds, memories: this.#memories }
  }

  /** Whether a memory says it already, for the same readers: that one is then as new as this item. */
  #isKnown (item: RetainItem): boolean {
    if (item.content.length > this.#chunkSize) return false
    const same = memoryOf(this.#core.store, this.#bank.seq, item)
    if (same === undefined) return this.#isExtracted(item)
    const at = item.mentionedAt
    const mentionedAt = at === null ? same.mentioned_at : Math.max(at, same.mentioned_at ?? at)
    this.#core.store.run('UPDATE memories SET mentioned_at = ?, updated_at = ? WHERE seq = ?', [mentionedAt, this.#now, same.seq])
    return true
  }

  /** Whether facts were made of this very text and are all there: no memory has its words any more. */
  #isExtracted ({ content, tags }: RetainItem): boolean {
    if (this.#core.outside.abilities.extracts !== true) return false
    const { store } = this.#core
    return documentsOf(store, this.#bank.seq, content, tags).some(({ seq }) => madeOf(store, seq).length > 0)
  }

  /** A memory of the document that says the same stays, with its id and vector: it lost its chunk to this one. */
  #stays (document: number, chunk: ChunkRow, item: RetainItem): boolean {
    const { store } = this.#core
    const same = store.all<MemoryRow>(
      `SELECT * FROM memories WHERE document = ? AND text_hash = ? AND chunk IS NULL AND document IS NOT NULL ORDER BY seq LIMIT ${MOST_ALIKE}`,
      [document, textHash(chunk.text)]).find(row => isSame(row, item))
    if (same === undefined) return false
    store.run('UPDATE memories SET chunk = ?, metadata = ?, mentioned_at = ?, updated_at = ? WHERE seq = ?',
      [chunk.seq, JSON.stringify(item.metadata), item.mentionedAt, this.#now, same.seq])
    return true
  }

  #add (document: number, chunk: ChunkRow, item: RetainItem): void {
    this.#memories.push(insertMemory(this.#core.store, this.#bank.seq, {
      document, chunk: chunk.seq, text: chunk.text.trim(), context: item.context, factType: 'world', entities: item.entities,
      tags: item.tags, metadata: item.metadata, observationScopes: item.observationScopes, mentionedAt: item.mentionedAt
    }, this.#now))
  }
}

function isSame (row: MemoryRow, item: RetainItem): boolean {
  return row.state === 'valid' && row.fact_type === 'world' && row.context === item.context &&
    tagKey(JSON.parse(row.tags) as string[]) === tagKey(item.tags) && item.entities.length === 0 && row.entities === '[]'
}

/** Equal for the same tags in any order. Pure. */
export function tagKey (tags: readonly string[]): string {
  return JSON.stringify([...tags].sort())
}

function paramsOf ({ context, metadata, timestamp }: RetainItem): Readonly<Record<string, unknown>> | null {
  const params = {
    ...context === null ? {} : { context }, ...Object.keys(metadata).length === 0 ? {} : { metadata },
    ...timestamp === null ? {} : { event_date: timestamp }
  }
  return Object.keys(params).length === 0 ? null : params
}
