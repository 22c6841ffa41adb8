import { randomUUID } from 'node:crypto'
import { tokensOf } from '../recall/tokens.js'
import { chunkText } from './chunk-text.js'
import type { RetainItem } from './request.js'

/** Of a sub-batch of an asynchronous retain. */
export const SUB_BATCH_TOKENS = 10_000
/** Of what is kept in one go where a retain is kept in several: other requests are served between them. */
export const SLICE_TOKENS = 2_500
const CHARS_PER_TOKEN = 4

/**
 * In their order. A document that goes on in a later one is added to there; an item that is larger than a sub-batch comes in
 * pieces.
 * @param chunkSize of the bank: no piece is smaller
 */
export function subBatchesOf (
  items: readonly RetainItem[], tokensOfBatch: number, chunkSize: number
): ReadonlyArray<readonly RetainItem[]> {
  const batches: RetainItem[][] = []
  const begun = new Set<string>()
  let room = 0
  for (const item of items.flatMap(each => piecesOf(each, chunkSize))) {
    const tokens = tokensOf(item.content)
    if (batches.length === 0 || tokens > room) {
      for (const { documentId } of batches.at(-1) ?? []) if (documentId !== null) begun.add(documentId)
      batches.push([])
      room = tokensOfBatch
    }
    const isBegun = item.documentId !== null && begun.has(item.documentId) && item.piece === undefined
    batches.at(-1)!.push(isBegun ? { ...item, updateMode: 'append', goesOn: true } : item)
    room -= tokens
  }
  return batches
}

/** Whether they are more than a sub-batch of an asynchronous retain may hold. Pure. */
export function isLarge (items: readonly RetainItem[]): boolean {
  let tokens = 0
  return items.some(({ content }) => (tokens += tokensOf(content)) > SUB_BATCH_TOKENS)
}

/** A very large text in several that make up one document. */
export function piecesOf (item: RetainItem, chunkSize: number): readonly RetainItem[] {
  if (tokensOf(item.content) <= SUB_BATCH_TOKENS) return [item]
  const texts = chunkText(item.content, Math.max(SLICE_TOKENS * CHARS_PER_TOKEN, chunkSize))
  const documentId = item.documentId ?? randomUUID()
  return texts.map((content, i) => {
    const piece = { isFirst: i === 0, isLast: i === texts.length - 1 }
    return { ...item, content, documentId, piece, ...i === 0 ? {} : { goesOn: true } }
  })
}
