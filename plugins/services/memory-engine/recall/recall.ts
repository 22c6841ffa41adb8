import type { Core } from '../core.js'
import { groupsCondition, joined, tagCondition, type Condition } from '../memories/tag-filter.js'
import type { BankRow } from '../store/bank-table.js'
import { configOf } from '../banks/config.js'
import { addRecency, addRerank, addSubjects, certainty, expand, fuse, keptTogether, NO_AGREEMENT, ordered, type Agreement, type Scored } from './fuse.js'
import { Candidates, fittingCount } from './candidates.js'
import type { Known } from './held-memories.js'
import { embedIdentity, rerank } from './model-calls.js'
import { NeighbourReader } from './neighbours.js'
import { PATIENCE, patiently } from './patience.js'
import { NO_VECTORS, queryVector } from './query-vector.js'
import type { RecalledRow } from './recalled-row.js'
import type { RecallRequest } from './request.js'
import { searchText } from './text-search.js'
import { vectorIndexOf, type Found } from './vector-index.js'
import type { Vector } from './vector-table.js'
import { queryWords } from './words.js'

/** What was found, best first, and how. */
export interface Recalled {
  readonly results: readonly { readonly row: RecalledRow, readonly scores: Scored, readonly final: number }[]
  readonly candidates: number
  readonly steps: Steps
  readonly timings: Readonly<Record<string, number>>
}

/** Null for a step that was taken, else why it was not. */
export interface Steps {
  readonly text: string | null
  readonly vectors: string | null
  readonly rerank: string | null
}

/** Candidates of each search. */
const budgets = { low: 100, mid: 200, high: 600 } as const
/** Those whose neighbours are looked at. */
const EXPANDED = 50
const MOST_RESULTS = 300
const RERANKED = 50

export async function recall (core: Core, bank: BankRow, request: RecallRequest, signal: AbortSignal): Promise<Recalled> {
  const timings: Record<string, number> = {}
  const timed = async <T>(name: string, work: () => T | Promise<T>): Promise<T> => {
    const start = performance.now()
    const result = await work()
    timings[name] = Math.round((performance.now() - start) * 100) / 100
    return result
  }
  const { store } = core
  const config = configOf(bank)
  const condition = conditionOf(core, bank, request)
  const wanted = budgets[request.budget ?? 'mid']
  // words are looked for while the query's vector is on its way
  const asked = timed('embed', () => queryVector(core, request.query, signal))
  asked.catch(() => {})
  const textOff = config.enable_text_search === false ? 'it is switched off for the bank' : null
  const byText = await timed('text', () => textOff !== null ? [] : searchText(store, bank.seq, request.query, wanted, condition))
  const candidates = new Candidates(core)
  const neighbours = config.enable_graph_retrieval === false ? null : new NeighbourReader(store, condition)
  await timed('ahead', () => {
    const memories = byText.map(({ seq }) => seq)
    candidates.readAhead(memories, request.max_tokens)
    neighbours?.readAhead(memories.slice(0, EXPANDED))
  })
  const query = await asked
  const byVector = await timed('vectors', () =>
    query.vector === null ? null : byVectors(core, bank, query.vector, wanted, condition))
  const scored = fuse(byText, byVector)
  const found = await timed('known', () => validOf(candidates, scored))
  if (neighbours !== null) {
    const first = ordered(scored).slice(0, EXPANDED).map(({ seq }) => seq)
    await timed('neighbours', () => expand(scored, { inDocuments: neighbours.of(first), inTime: keptTogether(first, found) }))
  }
  const about = validOf(candidates, scored)
  if (textOff === null) addSubjects(scored, about, new Set(queryWords(request.query)))
  addRecency(scored, about, request.at)
  const rerankOff = config.enable_reranking === false ? 'it is switched off for the bank'
    : await timed('rerank', () => secondPass(core, candidates, request.query, scored, signal))
  const known = validOf(candidates, scored)
  const order = ordered(scored)
  const scale = certainty(scored.values()) / (order[0]?.score || 1)
  const finals = order.map(each => (
    { scores: each, final: Math.min(1, each.score * scale), known: known.get(each.seq)! }))
  const results = await timed('rows', () =>
    fitting(candidates, chosen(finals, request).slice(0, MOST_RESULTS), request.max_tokens))
  return {
    results, candidates: order.length,
    steps: { text: textOff, vectors: query.why ?? (byVector?.length ? null : NO_VECTORS), rerank: rerankOff },
    timings
  }
}

/** What every result must hold, beside being valid and of the bank. Null if that is all. */
function conditionOf ({ store }: Core, bank: BankRow, request: RecallRequest): Condition | null {
  const { types, tags, tags_match: match, tags_aside: aside, tag_groups: groups, window } = request
  const byTags = tagCondition(bank.seq, tags, match ?? 'any', { aside: aside ?? [] })
  const all: (Condition | null)[] = [byTags, groupsCondition(store, bank.seq, groups)]
  if (types !== null && types.length > 0) all.push({ sql: `m.fact_type IN (${types.map(() => '?').join(', ')})`, values: types })
  if (window !== null) {
    all.push({
      sql: 'coalesce(m.occurred_start, m.mentioned_at) <= ? AND coalesce(m.occurred_end, m.occurred_start, m.mentioned_at) >= ?',
      values: [window.end, window.start]
    })
  }
  const conditions = all.filter(each => each !== null)
  return conditions.length === 0 ? null : joined(conditions, 'AND')
}

function byVectors (
  core: Core, bank: BankRow, vector: Vector, wanted: number, condition: Condition | null
): readonly Found[] {
  const identity = embedIdentity(core)
  if (identity === null) return []
  const model = core.store.kept<{ seq: number }>(
    'SELECT seq FROM embed_models WHERE name = ? AND dimensions = ?', [identity, vector.length])
  return model === undefined ? [] : vectorIndexOf(core).search(bank.seq, model.seq, vector, wanted, condition)
}

/** Null if the reranker had its say, else why it did not. */
async function secondPass (
  core: Core, candidates: Candidates, query: string, scored: ReadonlyMap<number, Scored>, signal: AbortSignal
): Promise<string | null> {
  const { rerank: ability, patience } = core.outside.abilities
  if (ability.model === null) return ability.why
  const top = ordered(scored).slice(0, RERANKED)
  if (top.length < 2) return 'there is nothing to order'
  const rows = candidates.rows(top.map(({ seq }) => seq))
  const texts = top.map(({ seq }) => rows.get(seq)?.text ?? '')
  const ms = patience?.rerankMs ?? PATIENCE.rerankMs
  const asked = await patiently(core, 'rerank', ms, signal, bound => rerank(core, query, texts, bound))
  if ('why' in asked) return asked.why
  // read now: recalls may have been answered while this one waited
  const known = agreements.get(core)
  const before = known?.model === ability.model ? known.agreement : NO_AGREEMENT
  const { agrees, agreement } = addRerank(top, asked.result, before)
  agreements.set(core, { model: ability.model, agreement })
  return agrees ? null : `the scores of '${ability.model}' contradict what was found, or agree with it no more than by chance, and do not count`
}

/** Of the reranker that was asked last. */
const agreements = new WeakMap<Core, { readonly model: string, readonly agreement: Agreement }>()

/** Takes out what is not valid any more. */
function validOf (candidates: Candidates, scored: Map<number, Scored>): ReadonlyMap<number, Known> {
  const known = candidates.known(scored.keys())
  for (const seq of scored.keys()) if (!known.has(seq)) scored.delete(seq)
  return known
}

interface Final {
  readonly scores: Scored
  readonly final: number
  readonly known: Known
}

/** Those that fit into the budget of tokens, with their rows; the first one whatever its size. */
function fitting (candidates: Candidates, finals: readonly Final[], maxTokens: number): Recalled['results'] {
  const kept = finals.slice(0, fittingCount(finals.map(({ known: { tokens } }) => tokens), maxTokens))
  const rows = candidates.rows(kept.map(({ scores }) => scores.seq))
  // it may have been deleted while the reranker was asked
  return kept.flatMap(({ scores, final }) => {
    const row = rows.get(scores.seq)
    return row === undefined ? [] : [{ row, scores, final }]
  })
}

/** A score that is missing is below any bound. */
function chosen (results: readonly Final[], request: RecallRequest): readonly Final[] {
  const { min_scores: least, prefer_observations: prefers } = request
  const bounds = Object.entries(least ?? {}).filter(([, bound]) => bound !== null) as [keyof NonNullable<typeof least>, number][]
  const kept = bounds.length === 0 ? results : results.filter(({ scores, final }) => {
    const all = { ...scores, final }
    return bounds.every(([name, bound]) => (all[name] ?? -Infinity) >= bound)
  })
  if (prefers !== true) return kept
  const isObservation = ({ known }: Final): boolean => known.type === 'observation'
  return [...kept.filter(isObservation), ...kept.filter(each => !isObservation(each))]
}
