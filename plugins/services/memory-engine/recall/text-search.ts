import type { Condition } from '../memories/tag-filter.js'
import type { Store } from '../store/store.js'
import { textIndexOf } from '../store/text-index.js'
import { WordCounts } from './word-counts.js'
import { phrase, queryWords } from './words.js'
import type { Found } from './vector-index.js'

/** What a word in the context or among the names weighs beside one in the text. */
const WEIGHTS = '1.0, 0.5, 0.5'
/** Scoring costs for each memory that has a word. In large banks words that many have are left out, the rarest never. */
const MOST_SCORED = 5000

const counts = new WeakMap<Store, WordCounts>()

/** Memories that have words of the query, by BM25, best first. */
export function searchText (
  store: Store, bank: number, query: string, wanted: number, condition: Condition | null
): readonly Found[] {
  const words = queryWords(query)
  if (words.length === 0) return []
  const index = textIndexOf(bank)
  const size = store.kept<{ count: number }>(`SELECT count(*) AS count FROM ${index}_docsize`)!.count
  const isLarge = size > MOST_SCORED
  const all = words.map(phrase)
  const { phrases, isFew } = isLarge ? telling(store, index, size, all) : { phrases: all, isFew: true }
  const found = run(store, index, phrases, wanted, condition, isFew)
  if (found.length > 0) return found
  // a word that nothing has may be the beginning of one
  return run(store, index, phrases.filter(each => each.length > 4).map(each => `${each}*`), wanted, condition, !isLarge)
}

function run (
  store: Store, index: string, phrases: readonly string[], wanted: number, condition: Condition | null, isFew: boolean
): readonly Found[] {
  if (phrases.length === 0) return []
  const match = phrases.join(' OR ')
  const { join, where, values } = condition === null ? { join: '', where: '', values: [] }
    : { join: `JOIN memories m ON m.seq = ${index}.rowid`, where: `AND ${condition.sql}`, values: condition.values }
  // of what even the rarest word finds too often, the newest are scored
  const first = isFew ? undefined : store.get<{ seq: number }>(
    `SELECT rowid AS seq FROM ${index} WHERE ${index} MATCH ? ORDER BY rowid DESC LIMIT 1 OFFSET ${MOST_SCORED}`, [match])
  return store.lists<[number, number]>('seq, score',
    `FROM (SELECT ${index}.rowid AS seq, -bm25(${index}, ${WEIGHTS}) AS score FROM ${index} ${join}
     WHERE ${index} MATCH ? AND ${index}.rowid > ? ${where} ORDER BY score DESC, seq DESC LIMIT ?)`,
    [match, first?.seq ?? 0, ...values, wanted]).map(([seq, score]) => ({ seq, score }))
}

interface Telling {
  readonly phrases: readonly string[]
  /** Whether all that has one of them can be scored in time. */
  readonly isFew: boolean
}

/** The words that are looked for, rarest first, as many as can be scored in time. */
function telling (store: Store, index: string, size: number, phrases: readonly string[]): Telling {
  const of = counts.get(store) ?? new WordCounts()
  counts.set(store, of)
  const counted = phrases.map(each => ({ phrase: each, count: of.of(store, index, each, size, 2 * MOST_SCORED) }))
    .filter(({ count }) => count > 0).sort((a, b) => a.count - b.count)
  if (counted.length === 0) return { phrases, isFew: true }
  let sum = 0
  const kept = counted.filter(({ count }, i) => (sum += count) <= MOST_SCORED || i === 0)
  return { phrases: kept.map(each => each.phrase), isFew: kept[0]!.count <= MOST_SCORED }
}
