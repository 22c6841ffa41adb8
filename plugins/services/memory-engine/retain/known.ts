import { configOf } from '../banks/config.js'
import type { Core } from '../core.js'
import type { BankRow } from '../store/bank-table.js'
import { chunksOf, documentsOf, findDocument, type DocumentRow } from '../store/document-table.js'
import { textHash } from '../store/memory-table.js'
import { MOST_ALIKE } from '../store/same-tags.js'
import type { Store } from '../store/store.js'
import { chunkText } from './chunk-text.js'
import { madeOf, SAID, VALID, type Said } from './made.js'
import type { RetainItem } from './request.js'
import { tagKey } from './retain.js'
import { soleMemories } from './same-text.js'
import { isLarge, piecesOf } from './sub-batches.js'

/** Where an item's text is kept already. */
export interface KnownAs {
  readonly documentId: string
  /** Null where several memories say it, or facts that were made of it. */
  readonly memoryId: string | null
}

/**
 * What says an item's text already, for the same readers, and with all of its metadata: for one that is added to a document, a
 * part of that document, else a document that says nothing beside it. That is then as new as the item. Null for what is to be
 * kept. What was edited or invalidated since does not say it any more.
 */
export function knownAs (core: Core, bank: BankRow, item: RetainItem): KnownAs | null {
  // neither is looked for
  if (item.entities.length > 0 || (item.observationScopes ?? null) !== null) return null
  const { store } = core
  const size = Number(configOf(bank).retain_chunk_size)
  return store.transaction(() => item.updateMode === 'append' ? partOf(core, bank, item, size)
    : (item.content.length <= size ? soleMemory(core, bank, item) : null) ?? wholeDocument(core, bank, item))
}

/** The only memory of a document. */
function soleMemory (core: Core, bank: BankRow, item: RetainItem): KnownAs | null {
  const same = soleMemories(core.store, bank.seq, item).find(row => says(row, item))
  if (same === undefined) return null
  renew(core, [same], item)
  return { documentId: same.document_id, memoryId: same.id }
}

/** A document of just this text, whose memories say it, or facts that were made of it. */
function wholeDocument (core: Core, bank: BankRow, item: RetainItem): KnownAs | null {
  // of one that came in several pieces, the text is not put together before it is read
  for (const document of documentsOf(core.store, bank.seq, item.content, item.tags, isLarge([item]))) {
    const { tags, metadata, retain_params: params } = document
    const { context = null } = JSON.parse(params ?? '{}') as { readonly context?: string | null }
    if (!says({ tags, metadata: metadata ?? '{}', context }, item)) continue
    const memories = chunkMemories(core.store, document.seq) ?? (extracts(core) ? madeOf(core.store, document.seq) : [])
    // what was added to it later may be for other readers
    if (memories.length === 0 || !memories.every(row => says(row, item))) continue
    renew(core, memories, item)
    return { documentId: document.document_id, memoryId: null }
  }
  return null
}

/** What of a document that grows says it: what was added to it once is not added again. */
function partOf (core: Core, bank: BankRow, item: RetainItem, size: number): KnownAs | null {
  const { store } = core
  const document = findDocument(store, bank.seq, item.documentId!)
  if (document === undefined) return null
  const [first, ...more] = item.content.length <= size ? [] : piecesOf(item, size)
  const rest = more.flatMap(({ content }) => chunkText(content, size))
  // as the first text of it, or as a later one
  const ways = first === undefined ? [[item.content]] : ['', '\n\n'].map(before => [...chunkText(before + first.content, size), ...rest])
  for (const texts of ways) {
    const rows = texts.map(text => memoryIn(store, document.seq, text, item))
    const found = rows.filter(row => row !== undefined)
    if (found.length === texts.length) {
      renew(core, found, item)
      return { documentId: document.document_id, memoryId: found.length === 1 ? found[0]!.id : null }
    }
    const facts = extracts(core) && isLast(store, document, texts) ? madeOf(store, document.seq, texts.length) : []
    if (facts.length === 0 || !facts.every(row => says(row, item))) continue
    renew(core, facts, item)
    return { documentId: document.document_id, memoryId: null }
  }
  return null
}

/** Of very many with one text in it, the newest are looked at. */
function memoryIn (store: Store, document: number, text: string, item: RetainItem): Said | undefined {
  return store.all<Said>(
    `SELECT ${SAID} FROM memories m WHERE m.document = ? AND m.text_hash = ? AND ${VALID} ORDER BY m.seq DESC LIMIT ${MOST_ALIKE}`,
    [document, textHash(text)]).find(row => says(row, item))
}

/** Whether these were added last. */
function isLast (store: Store, { seq }: DocumentRow, texts: readonly string[]): boolean {
  const last = store.all<{ text: string }>('SELECT text FROM chunks WHERE document = ? ORDER BY chunk_index DESC LIMIT ?', [seq, texts.length])
  return last.length === texts.length && last.reverse().every(({ text }, i) => text.trim() === texts[i]!.trim())
}

/** For the same readers, and with all that the item has beside its text. Pure. */
function says ({ tags, metadata, context }: Pick<Said, 'tags' | 'metadata' | 'context'>, item: RetainItem): boolean {
  if (context !== item.context || tagKey(JSON.parse(tags) as string[]) !== tagKey(item.tags)) return false
  const known = new Map(Object.entries(JSON.parse(metadata) as Record<string, string>))
  return Object.entries(item.metadata).every(([key, value]) => known.get(key) === value)
}

/** Null where a chunk has no memory that says it. */
function chunkMemories (store: Store, document: number): readonly Said[] | null {
  const memories = chunksOf(store, document).map(({ seq, text }) => store.get<Said>(
    `SELECT ${SAID} FROM memories m WHERE m.chunk = ? AND m.text_hash = ? AND ${VALID}`, [seq, textHash(text)]))
  const found = memories.filter(row => row !== undefined)
  return found.length === memories.length ? found : null
}

function extracts ({ outside: { abilities } }: Core): boolean {
  return abilities.extracts === true
}

function renew ({ store, now }: Core, memories: readonly Said[], { mentionedAt }: RetainItem): void {
  // null where the item names no time: the time stays
  const later = 'coalesce(max(mentioned_at, ?1), mentioned_at, ?1)'
  for (const { seq } of memories) store.run(`UPDATE memories SET mentioned_at = ${later}, updated_at = ?2 WHERE seq = ?3`, [mentionedAt, now(), seq])
}
