import { tokensOf } from '../recall/tokens.js'
import type { RetainItem } from './request.js'

/** Of a part of an asynchronous retain. */
export const PART_TOKENS = 10_000

/** In their order. A document that goes on in a later part is added to there. A part is larger only where one item is. Pure. */
export function partsOf (items: readonly RetainItem[], tokensOfPart: number): ReadonlyArray<readonly RetainItem[]> {
  const parts: RetainItem[][] = []
  const begun = new Set<string>()
  let room = 0
  for (const item of items) {
    const tokens = tokensOf(item.content)
    if (parts.length === 0 || tokens > room) {
      for (const { documentId } of parts.at(-1) ?? []) if (documentId !== null) begun.add(documentId)
      parts.push([])
      room = tokensOfPart
    }
    parts.at(-1)!.push(item.documentId !== null && begun.has(item.documentId) ? { ...item, updateMode: 'append' } : item)
    room -= tokens
  }
  return parts
}
