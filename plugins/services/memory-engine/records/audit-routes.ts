import { needBank } from '../store/bank-table.js'
import type { Cell } from '../store/store.js'
import { BANK, json, WireError, type Handler, type WireRoute } from '../wire/answer.js'
import { int, maybe, optional, readQuery, text } from '../wire/shape.js'
import { parseTime, wireTime } from '../wire/times.js'
import { auditLogOf } from './audit.js'
import { periodOf } from './periods.js'

interface Row {
  readonly id: string
  readonly bank_id: string
  readonly action: string
  readonly transport: string
  readonly started_at: number
  readonly duration_ms: number
  readonly facts: string
}

const list: Handler = ({ core, params, query, ignored }) => {
  const { action, transport, start_date: start, end_date: end, limit, offset } = readQuery(query, ignored, {
    action: maybe(text), transport: maybe(text), start_date: maybe(text), end_date: maybe(text),
    limit: optional(int({ min: 1, max: 500 }), 50), offset: optional(int({ min: 0 }), 0)
  })
  const { bank_id: bankId } = needBank(core.store, params.bank_id!)
  auditLogOf(core).flush()
  const { clause, values } = where(bankId, [
    ['action = ?', action], ['transport = ?', transport], ['started_at >= ?', timeOf('start_date', start)], ['started_at <= ?', timeOf('end_date', end)]
  ])
  const { total } = core.store.get<{ total: number }>(`SELECT count(*) AS total FROM audit_log WHERE ${clause}`, values)!
  const rows = core.store.all<Row>(`SELECT * FROM audit_log WHERE ${clause} ORDER BY started_at DESC, seq DESC LIMIT ? OFFSET ?`, [...values, limit, offset])
  return json({ bank_id: bankId, total, limit, offset, items: rows.map(view) })
}

/** Conditions with their values; those without one do not hold. */
export function where (bank: Cell, conditions: ReadonlyArray<readonly [string, Cell]>, column = 'bank_id'): { readonly clause: string, readonly values: readonly Cell[] } {
  const given = conditions.filter(([, value]) => value !== null)
  return { clause: [`${column} = ?`, ...given.map(([sql]) => sql)].join(' AND '), values: [bank, ...given.map(([, value]) => value)] }
}

export function timeOf (name: string, value: string | null): number | null {
  const at = value === null ? null : parseTime(value)
  if (value !== null && at === null) throw new WireError(400, `Invalid ${name}: use ISO 8601`)
  return at
}

function view (row: Row): Record<string, unknown> {
  return {
    id: row.id, action: row.action, transport: row.transport, bank_id: row.bank_id, started_at: wireTime(row.started_at),
    ended_at: wireTime(row.started_at + row.duration_ms), duration_ms: row.duration_ms,
    metadata: JSON.parse(row.facts) as Record<string, unknown>
  }
}

const stats: Handler = ({ core, params, query, ignored }) => {
  const { action, period } = readQuery(query, ignored, { action: maybe(text), period: optional(text, '7d') })
  const { bank_id: bankId } = needBank(core.store, params.bank_id!)
  auditLogOf(core).flush()
  const { trunc, start, stepMs } = periodOf(period, core.now())
  const { clause, values } = where(bankId, [['action = ?', action], ['started_at >= ?', start]])
  const rows = core.store.all<{ step: number, action: string, n: number }>(
    `SELECT started_at / ${stepMs} AS step, action, count(*) AS n FROM audit_log WHERE ${clause} GROUP BY 1, 2 ORDER BY 1`, values)
  const buckets = new Map<number, Record<string, number>>()
  for (const row of rows) buckets.set(row.step, { ...buckets.get(row.step), [row.action]: row.n })
  return json({
    bank_id: bankId, period, trunc, start: wireTime(start),
    buckets: [...buckets].map(([step, counts]) => ({
      time: wireTime(step * stepMs), actions: counts, total: Object.values(counts).reduce((sum, n) => sum + n, 0)
    }))
  })
}

/** Neither requests nor answers are kept: what is deleted from a bank is not in its record. */
const one: Handler = ({ core, params }) => {
  const { bank_id: bankId } = needBank(core.store, params.bank_id!)
  auditLogOf(core).flush()
  const row = core.store.get<Row>('SELECT * FROM audit_log WHERE bank_id = ? AND id = ?', [bankId, params.log_id!])
  if (row === undefined) throw new WireError(404, 'Audit log entry not found')
  return json({ ...view(row), request: null, response: null })
}

export const routes: readonly WireRoute[] = [
  { method: 'GET', path: `${BANK}/audit-logs`, handler: list },
  { method: 'GET', path: `${BANK}/audit-logs/stats`, handler: stats },
  { method: 'GET', path: `${BANK}/audit-logs/{log_id}`, handler: one }
]
