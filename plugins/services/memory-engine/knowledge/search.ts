import type { Core } from '../core.js'
import type { TagMode } from '../memories/tag-filter.js'
import { tagsMatch } from '../models/tag-match.js'
import { Turns } from '../store/turn.js'
import { NodeTable, type Page } from './node-table.js'
import { pageMatch, wordsOf, type PageMatch } from './page-text.js'

export type FoundPage = Page & PageMatch

interface Wanted {
  readonly query: string
  readonly limit: number
  readonly tags: readonly string[] | null
  readonly mode: TagMode
}

/** The pages that fit best, and how many fit. Others are served meanwhile. Rejects with the signal's reason. */
export async function searchPages (core: Core, bank: number, { query, limit, tags, mode }: Wanted, signal: AbortSignal): Promise<{
  readonly best: readonly FoundPage[]
  readonly total: number
}> {
  const words = wordsOf(query)
  let [best, total] = [[] as readonly FoundPage[], 0]
  const turns = new Turns(signal)
  for (const page of new NodeTable(core).pages(bank)) {
    if (tagsMatch(page.model.tags, tags, mode)) {
      const match = pageMatch(page, words)
      if (match.score > 0) {
        total += 1
        if (best.length < limit || match.score > best.at(-1)!.score) best = withNext(best, { ...page, ...match }, limit)
      }
    }
    await turns.next()
  }
  return { best, total }
}

/** Behind those that are as good. Pure. */
function withNext (best: readonly FoundPage[], next: FoundPage, limit: number): readonly FoundPage[] {
  const place = best.findIndex(({ score }) => score < next.score)
  return best.toSpliced(place < 0 ? best.length : place, 0, next).slice(0, limit)
}
