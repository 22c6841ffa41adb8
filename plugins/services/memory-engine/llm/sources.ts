import type { Core } from '../core.js'
import type { TagGroup, TagMode } from '../memories/tag-filter.js'
import type { RecalledRow } from '../recall/recalled-row.js'
import { recall } from '../recall/recall.js'
import type { BankRow } from '../store/bank-table.js'
import type { FactType } from '../store/memory-table.js'
import { tokensOf } from '../recall/tokens.js'

export interface SourceQuery {
  readonly query: string
  readonly types: readonly FactType[] | null
  readonly tags: readonly string[] | null
  readonly tagsMatch: TagMode
  readonly tagGroups: readonly TagGroup[] | null
  readonly maxTokens: number
}

/** A question that is longer is cut, as that of a client is. */
const LONGEST_QUERY = 2000

/** The memories that fit a question best, as many as a model is shown. */
export async function readSources (
  core: Core, bank: BankRow, query: SourceQuery, signal: AbortSignal
): Promise<readonly RecalledRow[]> {
  core.store.lookForOthers()
  const { results } = await recall(core, bank, {
    query: query.query.slice(0, LONGEST_QUERY), types: query.types, tags: query.tags, tags_match: query.tagsMatch,
    tag_groups: query.tagGroups, tags_aside: null,
    max_tokens: query.maxTokens, budget: 'mid', prefer_observations: null, trace: false, query_timestamp: null, include: null,
    min_scores: null, temporal_window: null, window: null, at: core.now()
  }, signal)
  let left = query.maxTokens
  return results.map(({ row }) => row).filter(({ text }) => (left -= tokensOf(text)) >= 0)
}
