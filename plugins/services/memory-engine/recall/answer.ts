import type { Core } from '../core.js'
import { chunkId, namesIn, SHOWN, sourcesOf, type ShownMemory } from '../memories/view.js'
import type { BankRow } from '../store/bank-table.js'
import type { Store } from '../store/store.js'
import { wireTime } from '../wire/times.js'
import { AnswerBytes, DECIMAL } from './answer-bytes.js'
import type { Scored } from './fuse.js'
import type { Recalled } from './recall.js'
import type { RecalledRow, Told } from './recalled-row.js'
import { tokensOf } from './tokens.js'
import type { RecallRequest } from './request.js'

type WireObject = Readonly<Record<string, unknown>>

/**
 * `RecallResponse` of the wire, as its JSON: what fits into the budget of tokens, and what was to be included with
 * it. What was told of a memory before is copied: to write all of an answer anew takes longer than to find it.
 */
export function recallAnswer ({ store }: Core, bank: BankRow, request: RecallRequest, recalled: Recalled): AnswerBytes {
  const { results, candidates, steps, timings } = recalled
  const rows = results.map(({ row }) => row)
  const sources = sourcesOf(store, rows)
  const { chunks, source_facts: facts } = request.include ?? { chunks: null, source_facts: null }
  const entities = request.include === null ? { max_tokens: 500 } : request.include.entities
  const others: WireObject = {
    trace: request.trace !== true ? null : {
      query: request.query, budget: request.budget, steps, timings_ms: timings,
      candidates, returned: results.length
    },
    entities: entities === null ? null : entitiesOf(store, bank, rows, entities.max_tokens),
    chunks: chunks === null ? null : chunksOf(store, bank.bank_id, rows, chunks.max_tokens),
    ...facts === null ? { source_facts: null, source_facts_truncated: null }
      : sourceFacts(store, bank.bank_id, rows, facts.max_tokens)
  }
  const answer = new AnswerBytes()
  answer.text('{"results":[')
  for (const [i, { row, scores, final }] of results.entries()) {
    addResult(answer, i === 0, toldOf(bank.bank_id, row, scores), sources.get(row.seq) ?? null, scores, final)
  }
  answer.text(`],${JSON.stringify(others).slice(1)}`)
  return answer
}

/** What is told of a memory beyond itself: its scores with six decimals, which is all that they mean. Pure. */
function endOf (sources: readonly string[] | null, { reranker, semantic, keyword }: Numbers, final: number): string {
  const scores = { final, reranker, semantic, keyword }
  const told = { source_fact_ids: sources, scores, attachments: null }
  const text = JSON.stringify(told, (_, value: unknown) => typeof value === 'number' ? Math.round(value * 1e6) / 1e6 : value)
  return `,${text.slice(1)}`
}

type Numbers = Pick<Scored, 'reranker' | 'semantic' | 'keyword'>

interface End {
  readonly bytes: Buffer
  /** Where its numbers stand; null is told of those without one. */
  readonly at: Readonly<Record<'final' | 'semantic' | 'keyword', number>>
}

/** By whether there is a number of the vectors (1), and one of the words (2). */
const ends: readonly End[] = [0, 1, 2, 3].map(has => {
  const scores = { reranker: null, semantic: (has & 1) === 0 ? null : 2, keyword: (has & 2) === 0 ? null : 2 }
  const text = endOf(null, scores, 2).replaceAll('2', DECIMAL)
  const at = (name: string): number => text.indexOf(`"${name}":`) + name.length + 3
  return { bytes: Buffer.from(text), at: { final: at('final'), semantic: at('semantic'), keyword: at('keyword') } }
})

function addResult (
  answer: AnswerBytes, isFirst: boolean, { bytes, shown, end }: Told,
  sources: readonly string[] | null, scores: Numbers, final: number
): void {
  const { reranker, semantic, keyword } = scores
  const isUsual = sources === null && reranker === null && isDecimal(final) && isDecimal(semantic ?? 0) && isDecimal(keyword ?? 0)
  const comma = isFirst ? 1 : 0
  const from = answer.size - comma + shown
  // a view costs as much as the copy
  answer.bytes(isUsual && !isFirst ? bytes : bytes.subarray(comma, isUsual ? undefined : shown))
  if (!isUsual) return answer.text(endOf(sources, scores, final))
  const { at } = ends[end]!
  answer.decimal(from + at.final, final)
  if (semantic !== null) answer.decimal(from + at.semantic, semantic)
  if (keyword !== null) answer.decimal(from + at.keyword, keyword)
}

/** Whether it can be written as a decimal is. Pure. */
function isDecimal (score: number): boolean {
  return score >= 0 && score < 9.999999
}

/** Rows are held from recall to recall, and what was told of them with them. */
function toldOf (bankId: string, row: RecalledRow, { semantic, keyword }: Numbers): Told {
  const end = (semantic === null ? 0 : 1) + (keyword === null ? 0 : 2)
  const before = row.told
  const isSame = before?.bankId === bankId
  if (isSame && before.end === end) return before
  const memory = isSame ? before.bytes.subarray(0, before.shown) : shownOf(bankId, row)
  const rest = ends[end]!.bytes
  // a part of a larger block would keep all of that block
  const bytes = Buffer.allocUnsafeSlow(memory.length + rest.length)
  bytes.set(memory)
  bytes.set(rest, memory.length)
  return row.told = { bankId, bytes, shown: memory.length, end }
}

function shownOf (bankId: string, row: RecalledRow): Buffer {
  return Buffer.from(`,${JSON.stringify({ ...memoryOf(bankId, row), entities: namesIn(row.entities) }).slice(0, -1)}`)
}

function factOf (bankId: string, row: Omit<RecalledRow, 'told'>): WireObject {
  return { ...memoryOf(bankId, row), source_fact_ids: null, scores: null, attachments: null }
}

function memoryOf (bankId: string, row: Omit<RecalledRow, 'told'>) {
  return {
    id: row.id, text: row.text, type: row.fact_type, entities: null as readonly string[] | null, context: row.context ?? '',
    occurred_start: wireTime(row.occurred_start), occurred_end: wireTime(row.occurred_end),
    mentioned_at: wireTime(row.mentioned_at),
    document_id: row.document_id, metadata: row.metadata === '{}' ? {} : JSON.parse(row.metadata) as Record<string, string>,
    chunk_id: chunkId(bankId, row.document_id, row.chunk_index), tags: namesIn(row.tags)
  }
}

function entitiesOf (store: Store, bank: BankRow, rows: readonly RecalledRow[], limit: number): WireObject {
  const named = rows.filter(({ entities }) => entities !== '[]').map(({ seq }) => seq)
  const found = named.length === 0 ? [] : store.all<{ id: string, name: string }>(
    `SELECT DISTINCT e.id AS id, e.name AS name FROM json_each(?) AS wanted JOIN memory_entities me ON me.memory = wanted.value
     JOIN entities e ON e.seq = me.entity WHERE e.bank = ?`, [JSON.stringify(named), bank.seq])
  let sum = 0
  const fitting = found.filter(({ name }) => (sum += tokensOf(name)) <= limit)
  return Object.fromEntries(fitting.map(({ id, name }) => [name, { entity_id: id, canonical_name: name, observations: [] }]))
}

/** The chunks of the results in their order; the last one is cut where the budget ends. */
function chunksOf (store: Store, bankId: string, rows: readonly RecalledRow[], limit: number): WireObject {
  const chunks: Record<string, unknown> = {}
  let left = limit
  for (const { chunk, chunk_index: index, document_id: document } of rows) {
    const id = chunkId(bankId, document, index)
    if (chunk === null || id === null || id in chunks || left <= 0) continue
    const { text } = store.get<{ text: string }>('SELECT text FROM chunks WHERE seq = ?', [chunk])!
    const shown = text.trim().slice(0, left * 4)
    chunks[id] = { id, text: shown, chunk_index: index, truncated: shown.length < text.trim().length, attachments: null }
    left -= tokensOf(shown)
  }
  return chunks
}

/** What the observations among the results were made from. */
function sourceFacts (store: Store, bankId: string, rows: readonly RecalledRow[], limit: number): WireObject {
  const observations = rows.filter(row => row.fact_type === 'observation').map(({ seq }) => seq)
  const found = store.all<ShownMemory>(
    `${SHOWN} WHERE m.state = 'valid' AND m.seq IN (
       SELECT source FROM memory_sources WHERE memory IN (SELECT value FROM json_each(?)))`,
    [JSON.stringify(observations)])
  let sum = 0
  const fitting = found.filter(({ text }) => limit < 0 || (sum += tokensOf(text)) <= limit)
  return {
    source_facts: Object.fromEntries(fitting.map(row => [row.id, factOf(bankId, row)])),
    source_facts_truncated: fitting.length < found.length
  }
}
