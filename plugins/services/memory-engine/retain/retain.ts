import { createHash, randomUUID } from 'node:crypto'
import { configOf } from '../banks/config.js'
import type { Core, Retained } from '../core.js'
import type { BankRow } from '../store/bank-table.js'
import { appendChunks, findDocument, settleText, writeDocument, type ChunkRow } from '../store/document-table.js'
import { deleteMemories, insertMemory, textHash, type MemoryRow } from '../store/memory-table.js'
import type { RetainItem } from './request.js'

/**
 * Keeps these items, in one transaction: when it returns they are durable. Without a model a text is one memory for each of
 * its chunks, of type `world`.
 */
export function retain (core: Core, bank: BankRow, items: readonly RetainItem[]): Retained {
  const { store, hooks } = core
  const retained = store.transaction(() => {
    const work = new Retaining(core, bank)
    for (const item of items) work.take(item)
    const result = work.finish()
    for (const listener of hooks.retaining) listener(result)
    return result
  })
  for (const listener of hooks.retained) listener(retained)
  return retained
}

class Retaining {
  readonly #core: Core
  readonly #bank: BankRow
  readonly #now: number
  readonly #chunkSize: number
  readonly #keepsText: boolean
  readonly #documents = new Set<number>()
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
    // items of one request that name the same document follow each other in it
    const appends = before !== undefined && (item.updateMode === 'append' || this.#documents.has(before.seq))
    const tags = appends ? [...new Set([...JSON.parse(before.tags) as string[], ...item.tags])] : item.tags
    const document = writeDocument(store, this.#bank.seq, documentId, {
      tags, metadata: item.metadata, retainParams: paramsOf(item), observationScopes: item.observationScopes
    }, this.#now)
    this.#documents.add(document)
    if (appends) this.#append(document, item, before.text_length > 0)
    else if (before === undefined) this.#append(document, item, false)
    else this.#replace(document, item)
    settleText(store, document, this.#keepsText, this.#now)
  }

  finish (): Retained {
    const { seq, bank_id: bankId } = this.#bank
    this.#core.store.run('UPDATE banks SET last_write_at = ?, last_document_at = ? WHERE seq = ?', [this.#now, this.#now, seq])
    return { bank: seq, bankId, documents: [...this.#documents], memories: this.#memories }
  }

  /** Whether a memory says it already, for the same readers: that one is then as new as this item. */
  #isKnown (item: RetainItem): boolean {
    if (item.content.length > this.#chunkSize) return false
    const tags = tagKey(item.tags)
    const same = this.#core.store.all<MemoryRow>(
      `SELECT * FROM memories WHERE bank = ? AND text_hash = ? AND state = 'valid' AND fact_type <> 'observation'`,
      [this.#bank.seq, textHash(item.content)]).find(row => tagKey(JSON.parse(row.tags) as string[]) === tags)
    if (same === undefined) return this.#isExtracted(item.content, tags)
    const at = item.mentionedAt
    const mentionedAt = at === null ? same.mentioned_at : Math.max(at, same.mentioned_at ?? at)
    this.#core.store.run('UPDATE memories SET mentioned_at = ?, updated_at = ? WHERE seq = ?', [mentionedAt, this.#now, same.seq])
    return true
  }

  /** Whether facts were made of this very text: no memory has its words any more. */
  #isExtracted (content: string, tags: string): boolean {
    if (this.#core.outside.abilities.extracts !== true) return false
    const hash = createHash('sha256').update(content).digest('hex')
    return this.#core.store.all<{ tags: string }>('SELECT tags FROM documents WHERE bank = ? AND content_hash = ?', [this.#bank.seq, hash])
      .some(document => tagKey(JSON.parse(document.tags) as string[]) === tags)
  }

  #append (document: number, item: RetainItem, hasText: boolean): void {
    const text = hasText ? `\n\n${item.content}` : item.content
    const chunks = appendChunks(this.#core.store, document, text, this.#chunkSize, this.#now)
    for (const chunk of chunks) this.#add(document, chunk, item)
  }

  /** Memories whose text is still there stay, with their ids and vectors. */
  #replace (document: number, item: RetainItem): void {
    const { store } = this.#core
    const before = store.all<MemoryRow>('SELECT * FROM memories WHERE document = ?', [document])
    store.run('DELETE FROM chunks WHERE document = ?', [document])
    const stays = new Set<number>()
    const sameText = new Map<string, MemoryRow[]>()
    for (const row of before.filter(each => isSame(each, item))) {
      const hash = textHash(row.text).toString('hex')
      const rows = sameText.get(hash)
      if (rows === undefined) sameText.set(hash, [row])
      else rows.push(row)
    }
    for (const chunk of appendChunks(store, document, item.content, this.#chunkSize, this.#now)) {
      const same = sameText.get(textHash(chunk.text).toString('hex'))?.shift()
      if (same === undefined) {
        this.#add(document, chunk, item)
        continue
      }
      stays.add(same.seq)
      store.run('UPDATE memories SET chunk = ?, metadata = ?, mentioned_at = ?, updated_at = ? WHERE seq = ?',
        [chunk.seq, JSON.stringify(item.metadata), item.mentionedAt, this.#now, same.seq])
    }
    deleteMemories(store, before.filter(row => !stays.has(row.seq)))
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

function tagKey (tags: readonly string[]): string {
  return JSON.stringify([...tags].sort())
}

function paramsOf ({ context, metadata, timestamp }: RetainItem): Readonly<Record<string, unknown>> | null {
  const params = {
    ...context === null ? {} : { context }, ...Object.keys(metadata).length === 0 ? {} : { metadata },
    ...timestamp === null ? {} : { event_date: timestamp }
  }
  return Object.keys(params).length === 0 ? null : params
}
