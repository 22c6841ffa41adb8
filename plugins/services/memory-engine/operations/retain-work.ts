import type { Core, LaterRetain } from '../core.js'
import { isBegunBy, nameOperation } from '../documents/document-table.js'
import type { RetainItem } from '../retain/request.js'
import { dropReplaced, retain } from '../retain/retain.js'
import { subBatchesOf, SUB_BATCH_TOKENS } from '../retain/sub-batches.js'
import { inTurn } from '../retain/turns.js'
import { configOf } from '../banks/config.js'
import { findBank, type BankRow } from '../store/bank-table.js'
import { chunksOf, findDocument } from '../store/document-table.js'
import { tokensOf } from '../recall/tokens.js'
import { WireError } from '../wire/answer.js'
import { PermanentFailure, type Operation } from './operation.js'
import type { Work } from './operation-queue.js'
import { operationsOf } from './operations.js'

/**
 * Lays an asynchronous retain down, in sub-batches that are worked off in their order. A repeat with the same operation id is the
 * same retain. Returns the id of the whole.
 */
export function retainLater (core: Core, { bank, request: { items }, operationId }: LaterRetain): string {
  const { table, queue } = operationsOf(core)
  const known = operationId === null ? null : table.get(operationId.toLowerCase())
  if (known !== null && known.bankId === bank.bank_id) return known.id
  if (known !== null) throw new WireError(409, `Operation ${known.id} belongs to another bank`)
  const batches = subBatchesOf(items, SUB_BATCH_TOKENS, Number(configOf(bank).retain_chunk_size))
  const ids = new Set(items.map(({ documentId }) => documentId))
  const documentId = ids.size === 1 ? [...ids][0]! : null
  const facts = {
    is_parent: true, ...documentId !== null && { document_id: documentId }, items_count: items.length,
    total_tokens: items.reduce((sum, { content }) => sum + tokensOf(content), 0), num_sub_batches: batches.length
  }
  return core.store.transaction(() => {
    const parent = table.add({
      ...operationId !== null && { id: operationId.toLowerCase() }, bankId: bank.bank_id, type: 'batch_retain', itemsCount: items.length,
      documentId, result: facts
    })
    batches.forEach((batch, n) => {
      table.add({
        bankId: bank.bank_id, type: 'retain', parentId: parent.id, subBatchIndex: n + 1, itemsCount: batch.length, payload: { items: batch },
        documentId: batch.length === 1 ? batch[0]!.documentId : null
      })
    })
    if (batches.length === 0) table.complete(parent.id, { unit_ids_count: 0 }, null)
    setImmediate(() => queue.wake())
    return parent.id
  })
}

/** Keeps the items of a sub-batch, or a document's text once more. */
export function retainWork (core: Core): Work {
  return (operation, run) => inTurn(core, operation.bankId, () => {
    const bank = findBank(core.store, operation.bankId)
    if (bank === undefined) throw new PermanentFailure(`Bank '${operation.bankId}' not found`)
    const { items = [], document } = (operation.payload ?? {}) as {
      readonly items?: readonly RetainItem[]
      readonly document?: string
    }
    const begun = new Set(items.filter(({ goesOn }) => goesOn !== true).map(({ documentId }) => documentId))
    run.commit(() => {
      const all = document === undefined ? items.filter(item => begun.has(item.documentId) || isOwn(core, bank, item, operation))
        : [itemOf(core, bank, document)]
      if (all.length < items.length && operationsOf(core).table.hasFailedBefore(operation)) {
        throw new PermanentFailure('an earlier part of this retain failed, and this one goes on in its document; retry the whole')
      }
      const { kinds, memories } = retain(core, bank, all)
      nameOperation(core.store, document === undefined ? kinds : new Map([...kinds.keys()].map(each => [each, 'reprocess'])), operation.id)
      for (const { documentId, piece, updateMode } of all) {
        if (piece?.isLast !== true || updateMode === 'append') continue
        const written = findDocument(core.store, bank.seq, documentId!)
        if (written !== undefined) dropReplaced(core.store, written.seq)
      }
      // a sub-batch is kept whole or not at all, so nothing in between is ever to be seen
      run.progress('retaining', operation.itemsCount, operation.itemsCount)
      return { unit_ids_count: memories.length, extraction_errors_count: 0 }
    })
    return Promise.resolve()
  })
}

/** Whether the document is still the one that this retain has begun: another may have written it anew since. */
function isOwn (core: Core, bank: BankRow, { documentId }: RetainItem, { parentId }: Operation): boolean {
  const document = findDocument(core.store, bank.seq, documentId!)
  return document !== undefined && parentId !== null && isBegunBy(core.store, document.seq, parentId)
}

/** A document as the item that it was retained with. */
function itemOf (core: Core, bank: BankRow, documentId: string): RetainItem {
  const document = findDocument(core.store, bank.seq, documentId)
  if (document === undefined) throw new PermanentFailure('Document not found')
  const { context = null, metadata = {} } = JSON.parse(document.retain_params ?? '{}') as { context?: string | null, metadata?: Record<string, string> }
  const { at } = core.store.get<{ at: number | null }>('SELECT max(mentioned_at) AS at FROM memories WHERE document = ?', [document.seq])!
  return {
    content: chunksOf(core.store, document.seq).map(({ text }) => text).join(''), mentionedAt: at, timestamp: null, context, metadata, documentId,
    entities: [], tags: JSON.parse(document.tags) as string[],
    observationScopes: document.observation_scopes === null ? null : JSON.parse(document.observation_scopes),
    strategy: null, updateMode: 'replace'
  }
}
