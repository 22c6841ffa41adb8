import { WireError } from '../wire/answer.js'
import { wireTime } from '../wire/times.js'
import type { BankRow } from '../store/bank-table.js'
import type { Cell, Store } from '../store/store.js'

type Counts = Readonly<Record<string, number>>

/** `BankStatsResponse` of the wire. */
export function statsOf (store: Store, bank: BankRow): Readonly<Record<string, unknown>> {
  const nodes = counted(store, `SELECT fact_type AS name, count(*) AS count FROM memories WHERE bank = ? AND state = 'valid' GROUP BY fact_type`, [bank.seq])
  const links = linkCounts(store, bank)
  const documents = store.get<{ count: number }>('SELECT count(*) AS count FROM documents WHERE bank = ?', [bank.seq])!.count
  const open = store.get<{ pending: number, failed: number }>(
    `SELECT count(*) FILTER (WHERE consolidated_at IS NULL AND consolidation_failed_at IS NULL) AS pending,
            count(*) FILTER (WHERE consolidation_failed_at IS NOT NULL) AS failed
     FROM memories WHERE bank = ? AND state = 'valid' AND fact_type <> 'observation'`, [bank.seq])!
  const operations = operationCounts(store, bank)
  return {
    bank_id: bank.bank_id, total_nodes: sum(nodes), total_links: sum(links), total_documents: documents,
    nodes_by_fact_type: nodes, links_by_link_type: links, links_by_fact_type: {}, links_breakdown: {},
    pending_operations: (operations.pending ?? 0) + (operations.processing ?? 0), failed_operations: operations.failed ?? 0,
    operations_by_status: operations,
    last_consolidated_at: wireTime(bank.last_consolidated_at), last_memory_write_at: wireTime(bank.last_write_at),
    pending_consolidation: open.pending, failed_consolidation: open.failed, total_observations: nodes.observation ?? 0
  }
}

/** Pairs that name the same entity, and neighbours in a document. Those by time and vectors are made for each graph. */
function linkCounts (store: Store, bank: BankRow): Counts {
  const entity = store.get<{ count: number }>(
    `SELECT coalesce(sum(members * (members - 1) / 2), 0) AS count FROM (
       SELECT count(*) AS members FROM memory_entities JOIN entities ON entities.seq = memory_entities.entity
       WHERE entities.bank = ? GROUP BY entities.seq)`, [bank.seq])!.count
  const shared = store.get<{ count: number }>(
    `SELECT coalesce(sum(members - 1), 0) AS count FROM (
       SELECT count(*) AS members FROM memories WHERE bank = ? AND document IS NOT NULL AND state = 'valid' GROUP BY document)`, [bank.seq])!.count
  return Object.fromEntries(Object.entries({ entity, document: shared }).filter(([, count]) => count > 0))
}

/** Operations stand in a table of another part, which may not be there. */
function operationCounts (store: Store, bank: BankRow): Record<string, number> {
  const has = store.get(`SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'operations'`) !== undefined
  return has ? counted(store, 'SELECT status AS name, count(*) AS count FROM operations WHERE bank_id = ? GROUP BY status', [bank.bank_id]) : {}
}

function counted (store: Store, sql: string, values: readonly Cell[]): Record<string, number> {
  return Object.fromEntries(store.all<{ name: string, count: number }>(sql, values).map(({ name, count }) => [name, count]))
}

function sum (counts: Counts): number {
  return Object.values(counts).reduce((total, count) => total + count, 0)
}

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000
/** The wire's periods: how far back, in steps of which size. */
const periods: Readonly<Record<string, { readonly trunc: string, readonly stepMs: number, readonly steps: number }>> = {
  '1h': { trunc: 'minute', stepMs: MINUTE_MS, steps: 60 },
  '12h': { trunc: 'hour', stepMs: HOUR_MS, steps: 12 },
  '1d': { trunc: 'hour', stepMs: HOUR_MS, steps: 24 },
  '7d': { trunc: 'day', stepMs: DAY_MS, steps: 7 },
  '30d': { trunc: 'day', stepMs: DAY_MS, steps: 30 },
  '90d': { trunc: 'day', stepMs: DAY_MS, steps: 90 }
}
const timeFields: readonly string[] = ['created_at', 'mentioned_at', 'occurred_start']

function notOne (name: string, value: string, allowed: readonly string[]): WireError {
  return new WireError(400, `Invalid ${name} '${value.slice(0, 50)}'. Must be one of: ${allowed.join(', ')}`)
}

/** `MemoriesTimeseriesResponse` of the wire: every step has its bucket, the last one holds the present. */
export function timeseriesOf (
  store: Store, bank: BankRow, period: string, field: string, now: number
): Readonly<Record<string, unknown>> {
  const shape = periods[period]
  if (shape === undefined) throw notOne('period', period, Object.keys(periods))
  if (!timeFields.includes(field)) throw notOne('time_field', field, timeFields)
  const { trunc, stepMs, steps } = shape
  const first = Math.floor(now / stepMs) * stepMs - (steps - 1) * stepMs
  const rows = store.all<{ bucket: number, fact_type: string, count: number }>(
    `SELECT CAST((${field} - ?) / ? AS INTEGER) AS bucket, fact_type, count(*) AS count FROM memories
     WHERE bank = ? AND state = 'valid' AND ${field} >= ? GROUP BY 1, 2`, [first, stepMs, bank.seq, first])
  const buckets = Array.from({ length: steps }, (_, i) => (
    { time: wireTime(first + i * stepMs), world: 0, experience: 0, observation: 0 }))
  for (const { bucket, fact_type: type, count } of rows) {
    const at = buckets[bucket]
    if (at !== undefined && (type === 'world' || type === 'experience' || type === 'observation')) at[type] += count
  }
  return { bank_id: bank.bank_id, period, trunc, time_field: field, buckets }
}
