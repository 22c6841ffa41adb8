import type { Core } from '../core.js'
import { groupsCondition, joined, tagCondition, type Condition, type TagGroup, type TagMode } from '../memories/tag-filter.js'
import { SHOWN, type ShownMemory } from '../memories/view.js'
import { phrase, queryWords } from '../recall/words.js'
import type { BankRow } from '../store/bank-table.js'
import type { FactType } from '../store/memory-table.js'
import { textIndexOf } from '../store/text-index.js'
import { tokensOf } from './model.js'

export interface SourceQuery {
  readonly query: string
  readonly types: readonly FactType[] | null
  readonly tags: readonly string[] | null
  readonly tagsMatch: TagMode
  readonly tagGroups: readonly TagGroup[] | null
  readonly maxTokens: number
}

/** The memories that fit a question best, as many as a model is shown. */
export async function readSources (
  { store }: Core, bank: BankRow, query: SourceQuery, signal: AbortSignal
): Promise<readonly ShownMemory[]> {
  await Promise.resolve()
  signal.throwIfAborted()
  const words = queryWords(query.query)
  const conditions: Condition[] = [{ sql: `m.bank = ? AND m.state = 'valid'`, values: [bank.seq] }]
  const table = textIndexOf(bank.seq)
  conditions.push({ sql: `${table} MATCH ?`, values: [words.map(phrase).join(' OR ')] })
  if (query.types !== null) conditions.push({ sql: `m.fact_type IN (${query.types.map(() => '?').join(', ')})`, values: [...query.types] })
  const tags = tagCondition(bank.seq, query.tags, query.tagsMatch)
  const groups = groupsCondition(store, bank.seq, query.tagGroups)
  const all = joined([...conditions, ...tags === null ? [] : [tags], ...groups === null ? [] : [groups]], 'AND')
  const rows = words.length === 0 ? [] : store.all<ShownMemory>(
    `${SHOWN} JOIN ${table} ON ${table}.rowid = m.seq WHERE ${all.sql} ORDER BY bm25(${table}) LIMIT 100`, all.values)
  let left = query.maxTokens
  return rows.filter(({ text }) => (left -= tokensOf(text)) >= 0)
}
