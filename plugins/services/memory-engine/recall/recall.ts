import type { Core } from '../core.js'
import { groupsCondition, joined, tagCondition, type Condition } from '../memories/tag-filter.js'
import type { BankRow } from '../store/bank-table.js'
import { configOf } from '../banks/config.js'
import { addRecency, addRerank, certainty, expand, fuse, ordered, type Scored } from './fuse.js'
import type { FactType } from '../store/memory-table.js'
import { embed, embedIdentity, rerank } from './model-calls.js'
import { neighboursOf } from './neighbours.js'
import { recalledRows, type RecalledRow } from './recalled-row.js'
import { tokensIn } from './tokens.js'
import type { RecallRequest } from './request.js'
import { searchText } from './text-search.js'
import { vectorIndexOf, type Found } from './vector-index.js'
import { knownModel, type Vector } from './vector-table.js'

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
const NO_VECTORS = 'no memory has a vector of this model yet'
const MOST_RESULTS = 300
const RERANKED = 50
/** A model that is slow or away holds no recall up for longer. */
const PATIENCE = { embedMs: 3000, rerankMs: 9000 }
/** After it did, recalls go on without it for so long. */
const SPARED_MS = 5000

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
  const textOff = config.enable_text_search === false ? 'the bank has it switched off' : null
  const byText = await timed('text', () => textOff !== null ? [] : searchText(store, bank.seq, request.query, wanted, condition))
  const query = await asked
  const byVector = await timed('vectors', () =>
    query.vector === null ? null : byVectors(core, bank, query.vector, wanted, condition))
  const scored = fuse(byText, byVector)
  if (config.enable_graph_retrieval !== false) {
    const first = ordered(scored).slice(0, EXPANDED).map(({ seq }) => seq)
    await timed('neighbours', () => expand(scored, neighboursOf(store, first, condition)))
  }
  const known = await timed('known', () => knownOf(core, [...scored.keys()]))
  for (const seq of scored.keys()) if (!known.has(seq)) scored.delete(seq)
  addRecency(scored, known, request.at)
  const rerankOff = config.enable_reranking === false ? 'the bank has it switched off'
    : await timed('rerank', () => secondPass(core, request.query, scored, signal))
  const order = ordered(scored)
  const scale = certainty(scored.values()) / (order[0]?.score || 1)
  const finals = order.map(each => (
    { scores: each, final: Math.min(1, each.score * scale), known: known.get(each.seq)! }))
  const results = await timed('rows', () =>
    fitting(core, chosen(finals, request).slice(0, MOST_RESULTS), request.max_tokens))
  return {
    results, candidates: order.length,
    steps: { text: textOff, vectors: query.why ?? (byVector?.length ? null : NO_VECTORS), rerank: rerankOff },
    timings
  }
}

/** What every result must hold, beside being valid and of the bank. Null if that is all. */
function conditionOf ({ store }: Core, bank: BankRow, request: RecallRequest): Condition | null {
  const { types, tags, tags_match: match, tag_groups: groups, window } = request
  const all: (Condition | null)[] = [tagCondition(bank.seq, tags, match ?? 'any'), groupsCondition(store, bank.seq, groups)]
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

const spared = new WeakMap<Core, Partial<Record<'embed' | 'rerank', number>>>()
const queries = new WeakMap<Core, Map<string, Vector>>()
const KEPT_QUERIES = 200

/** Null with the reason why there is none. */
interface QueryVector {
  readonly vector: Vector | null
  readonly why: string | null
}

async function queryVector (core: Core, query: string, signal: AbortSignal): Promise<QueryVector> {
  const identity = embedIdentity(core)
  if (identity === null) return { vector: null, why: core.outside.abilities.embed.why }
  let kept = queries.get(core)
  if (kept === undefined) queries.set(core, kept = new Map())
  const key = `${identity}\n${query}`
  const known = kept.get(key)
  if (known !== undefined) return { vector: known, why: null }
  // with no vectors to compare with there is no reason to wait for another
  if (knownModel(core.store, identity) === -1) return { vector: null, why: NO_VECTORS }
  const asked = await patiently(core, 'embed', core.outside.abilities.patience?.embedMs ?? PATIENCE.embedMs, signal,
    bound => embed(core, [query], false, bound))
  if ('why' in asked) return { vector: null, why: asked.why }
  const vector = asked.result[0]!
  if (kept.size >= KEPT_QUERIES) kept.delete(kept.keys().next().value!)
  kept.set(key, vector)
  return { vector, why: null }
}

function byVectors (
  core: Core, bank: BankRow, vector: Vector, wanted: number, condition: Condition | null
): readonly Found[] {
  const identity = embedIdentity(core)
  if (identity === null) return []
  const model = core.store.get<{ seq: number }>(
    'SELECT seq FROM embed_models WHERE name = ? AND dimensions = ?', [identity, vector.length])
  return model === undefined ? [] : vectorIndexOf(core).search(bank.seq, model.seq, vector, wanted, condition)
}

/** Null if the reranker had its say, else why it did not. */
async function secondPass (
  core: Core, query: string, scored: ReadonlyMap<number, Scored>, signal: AbortSignal
): Promise<string | null> {
  const { rerank: ability, patience } = core.outside.abilities
  if (ability.model === null) return ability.why
  const top = ordered(scored).slice(0, RERANKED)
  if (top.length < 2) return 'there is nothing to order'
  const rows = recalledRows(core.store, top.map(({ seq }) => seq))
  const texts = top.map(({ seq }) => rows.get(seq)?.text ?? '')
  const ms = patience?.rerankMs ?? PATIENCE.rerankMs
  const asked = await patiently(core, 'rerank', ms, signal, bound => rerank(core, query, texts, bound))
  if ('why' in asked) return asked.why
  addRerank(top, asked.result)
  return null
}

/** Waits for a model up to a bound, and not at all shortly after it failed. Rejects only when the client leaves. */
async function patiently<T> (
  core: Core, name: 'embed' | 'rerank', ms: number, signal: AbortSignal, work: (bound: AbortSignal) => Promise<T>
): Promise<{ readonly result: T } | { readonly why: string }> {
  let until = spared.get(core)
  if (until === undefined) {
    spared.set(core, until = {})
    // another model may be there
    core.outside.onAbilities(() => { spared.set(core, {}) })
  }
  if (performance.now() < (until[name] ?? 0)) return { why: `the model for ${name} failed a moment ago` }
  // what AbortSignal.any and timeout do, at a tenth of their cost
  const bound = new AbortController()
  const leave = (): void => bound.abort(signal.reason)
  signal.addEventListener('abort', leave, { once: true })
  const timer = setTimeout(() => bound.abort(new Error('too slow')), ms)
  try {
    return { result: await work(bound.signal) }
  } catch (error) {
    signal.throwIfAborted()
    until[name] = performance.now() + SPARED_MS
    const how = bound.signal.aborted ? `did not answer within ${ms} ms` : `failed: ${(error as Error).message}`
    return { why: `the model for ${name} ${how}` }
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', leave)
  }
}

/** What the order needs of each candidate that is still valid. */
interface Known {
  readonly mentionedAt: number | null
  readonly type: FactType
  readonly tokens: number
}

function knownOf ({ store }: Core, memories: readonly number[]): ReadonlyMap<number, Known> {
  const rows = store.lists<[number, number | null, FactType, number]>('m.seq, m.mentioned_at, m.fact_type, length(m.text)',
    `FROM json_each(?) AS wanted CROSS JOIN memories m ON m.seq = wanted.value WHERE m.state = 'valid'`, [JSON.stringify(memories)])
  return new Map(rows.map(([seq, mentionedAt, type, length]) => [seq, { mentionedAt, type, tokens: tokensIn(length) }]))
}

interface Final {
  readonly scores: Scored
  readonly final: number
  readonly known: Known
}

/** Those that fit into the budget of tokens, with their rows; the first one whatever its size. */
function fitting ({ store }: Core, finals: readonly Final[], maxTokens: number): Recalled['results'] {
  if (maxTokens === 0) return []
  let sum = 0
  const over = finals.findIndex(({ known: { tokens } }, i) => (sum += tokens) > maxTokens && i > 0)
  const kept = over < 0 ? finals : finals.slice(0, over)
  const rows = recalledRows(store, kept.map(({ scores }) => scores.seq))
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
