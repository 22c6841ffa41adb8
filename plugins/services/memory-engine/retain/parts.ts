import { randomUUID } from 'node:crypto'
import { tokensOf } from '../recall/tokens.js'
import { chunkText } from './chunk-text.js'
import type { RetainItem } from './request.js'

/** Of a part of an asynchronous retain. */
export const PART_TOKENS = 10_000
/** Of what is kept in one go where a retain is kept in several: other requests are served between them. */
export const SLICE_TOKENS = 2_500
const CHARS_PER_TOKEN = 4

/**
 * In their order. A document that goes on in a later part is added to there; an item that is larger than a part comes in pieces.
 * @param chunkSize of the bank: no piece is smaller
 */
export function partsOf (
  items: readonly RetainItem[], tokensOfPart: number, chunkSize: number
): ReadonlyArray<readonly RetainItem[]> {
  const parts: RetainItem[][] = []
  const begun = new Set<string>()
  let room = 0
  for (const item of items.flatMap(each => piecesOf(each, chunkSize))) {
    const tokens = tokensOf(item.content)
    if (parts.length === 0 || tokens > room) {
      for (const { documentId } of parts.at(-1) ?? []) if (documentId !== null) begun.add(documentId)
      parts.push([])
      room = tokensOfPart
    }
    const isBegun = item.documentId !== null && begun.has(item.documentId) && item.piece === undefined
    parts.at(-1)!.push(isBegun ? { ...item, updateMode: 'append', goesOn: true } : item)
    room -= tokens
  }
  return parts
}

/** Whether they are more than a part of an asynchronous retain may hold. Pure. */
export function isLarge (items: readonly RetainItem[]): boolean {
  let tokens = 0
  return items.some(({ content }) => (tokens += tokensOf(content)) > PART_TOKENS)
}

/** A very large text in several that make up one document. */
export function piecesOf (item: RetainItem, chunkSize: number): readonly RetainItem[] {
  if (tokensOf(item.content) <= PART_TOKENS) return [item]
  const texts = chunkText(item.content, Math.max(SLICE_TOKENS * CHARS_PER_TOKEN, chunkSize))
  const documentId = item.documentId ?? randomUUID()
  return texts.map((content, i) => {
    const piece = { isFirst: i === 0, isLast: i === texts.length - 1 }
    return { ...item, content, documentId, piece, ...i === 0 ? {} : { goesOn: true } }
  })
}
