import { embedIdentity } from '../recall/model-calls.js'
import { vectorIndexOf } from '../recall/vector-index.js'
import { knownModel, vectorsOf } from '../recall/vector-table.js'
import type { Core } from '../core.js'
import type { BankRow } from '../store/bank-table.js'
import type { Cell, Store } from '../store/store.js'
import { turn } from '../store/turn.js'

/** Which part of a graph is meant. */
export interface Around {
  /** Of the one in the middle. */
  readonly id: string
  /** Steps away from it. */
  readonly depth: number
  readonly most: number
}

/** What can be drawn. */
export const MOST_AROUND = 500

/** Each of them may have hundreds of tags, and each tag is two steps in an index. */
const RIM_AT_ONCE = 20

/** How many are taken of what is nearest by vectors to the memory in the middle. */
const NEAREST = 8

/** The one before and the one behind each of the rim, of those that have the same key. Each is one step in an index. */
function beside (table: string, key: string): string {
  return ([['<', 'DESC'], ['>', 'ASC']] as const).map(([than, order]) =>
    `SELECT (SELECT o.memory FROM ${table} o JOIN memories v ON v.seq = o.memory AND v.state = 'valid'
       WHERE ${key} AND o.memory ${than} t.memory ORDER BY o.memory ${order} LIMIT 1) AS seq
     FROM rim JOIN ${table} t ON t.memory = rim.seq`).join(' UNION ')
}

const IN_DOCUMENT = ([['<', 'DESC'], ['>', 'ASC']] as const).map(([than, order]) =>
  `SELECT (SELECT o.seq FROM memories o WHERE o.document = m.document AND o.state = 'valid' AND o.seq ${than} m.seq
     ORDER BY o.seq ${order} LIMIT 1) AS seq FROM rim JOIN memories m ON m.seq = rim.seq`).join(' UNION ')

/** Of very many that were mentioned at one time, those with the next numbers, and not the others one by one. */
const IN_TIME = ([['<', 'DESC'], ['>', 'ASC']] as const).map(([than, order]) =>
  `SELECT coalesce(
     (SELECT o.seq FROM memories o WHERE o.bank = m.bank AND o.state = 'valid' AND o.mentioned_at = m.mentioned_at AND o.seq ${than} m.seq
       ORDER BY o.seq ${order} LIMIT 1),
     (SELECT o.seq FROM memories o WHERE o.bank = m.bank AND o.state = 'valid' AND o.mentioned_at ${than} m.mentioned_at
       ORDER BY o.mentioned_at ${order}, o.seq ${order} LIMIT 1)) AS seq FROM rim JOIN memories m ON m.seq = rim.seq`).join(' UNION ')

/** Those beside the memories whose numbers are bound as a JSON list. Every row of it is found by an index. */
export const BESIDE = `WITH rim (seq) AS (SELECT value FROM json_each(?))
  SELECT seq FROM (${beside('memory_tags', 'o.bank = t.bank AND o.tag = t.tag')} UNION ${beside('memory_entities', 'o.entity = t.entity')}
    UNION ${IN_DOCUMENT} UNION ${IN_TIME}) WHERE seq IS NOT NULL`

/**
 * A memory and those around it, so many steps away: those that were kept right before and after with the same name, tag or
 * document, those next to it in time, and those next to the middle by vectors. Beside the one search by vectors it costs a few
 * steps in indexes for each that is found, however large the bank is. Requests are served meanwhile.
 * @returns their numbers; none where there is no such valid memory in the bank
 */
export async function memoriesAround (
  core: Core, bank: BankRow, { id, depth, most }: Around, signal: AbortSignal
): Promise<readonly number[]> {
  const { store } = core
  const middle = store.get<{ seq: number }>(`SELECT seq FROM memories WHERE id = ? AND bank = ? AND state = 'valid'`, [id, bank.seq])
  if (middle === undefined) return []
  const taken = new Set([middle.seq])
  let rim: readonly number[] = [middle.seq]
  for (let step = 0; step < depth && rim.length > 0; step++) {
    const reached: number[] = []
    for (let from = 0; from < rim.length; from += RIM_AT_ONCE) {
      for (const seq of numbers(store, BESIDE, [JSON.stringify(rim.slice(from, from + RIM_AT_ONCE))])) reached.push(seq)
      await turn()
      signal.throwIfAborted()
    }
    if (step === 0) reached.push(...nearestOf(core, bank, middle.seq))
    rim = [...new Set(reached)].filter(seq => !taken.has(seq)).slice(0, most - taken.size)
    for (const seq of rim) taken.add(seq)
  }
  return [...taken]
}

function nearestOf (core: Core, bank: BankRow, memory: number): readonly number[] {
  const identity = embedIdentity(core)
  if (identity === null) return []
  const model = knownModel(core.store, identity)
  const [middle] = vectorsOf(core.store, model, [memory])
  if (middle === undefined) return []
  return vectorIndexOf(core).search(bank.seq, model, middle.vector, NEAREST, null).map(({ seq }) => seq)
}

/** Of each entity the newest are looked at: a pair of which one is named no more often is counted right. */
const MENTIONS = 200

/**
 * The same of an entity: those that are named together with it, the most frequent first, and the memories that name them.
 * Requests are served meanwhile.
 */
export async function entitiesAround (
  store: Store, bank: BankRow, { id, depth, most }: Around, signal: AbortSignal
): Promise<{ readonly entities: readonly number[], readonly memories: readonly number[] }> {
  const middle = store.get<{ seq: number }>('SELECT seq FROM entities WHERE id = ? AND bank = ?', [id, bank.seq])
  if (middle === undefined) return { entities: [], memories: [] }
  const entities = new Set([middle.seq])
  const memories = new Set<number>()
  let rim: readonly number[] = [middle.seq]
  for (let step = 0; step <= depth; step++) {
    const reached = new Set<number>()
    for (const entity of rim) {
      const mentions = numbers(store, 'SELECT memory AS seq FROM memory_entities WHERE entity = ? ORDER BY memory DESC LIMIT ?', [entity, MENTIONS])
      for (const memory of mentions) memories.add(memory)
      if (step < depth && entities.size + reached.size < most) {
        for (const other of namedBeside(store, entity, mentions)) if (!entities.has(other)) reached.add(other)
      }
      await turn()
      signal.throwIfAborted()
    }
    rim = [...reached].slice(0, most - entities.size)
    for (const seq of rim) entities.add(seq)
  }
  return { entities: [...entities], memories: [...memories] }
}

function namedBeside (store: Store, entity: number, memories: readonly number[]): readonly number[] {
  return numbers(store, `SELECT b.entity AS seq FROM json_each(?) AS wanted CROSS JOIN memories v ON v.seq = wanted.value AND v.state = 'valid'
    CROSS JOIN memory_entities b ON b.memory = v.seq AND b.entity <> ? GROUP BY b.entity ORDER BY count(*) DESC`,
  [JSON.stringify(memories), entity])
}

function numbers (store: Store, sql: string, values: readonly Cell[]): number[] {
  return store.all<{ seq: number }>(sql, values).map(({ seq }) => seq)
}
