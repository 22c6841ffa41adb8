import { needBank } from '../store/bank-table.js'
import { BANK, json, type Handler, type WireRoute } from '../wire/answer.js'
import { bool, int, maybe, oneOf, optional, readQuery, text } from '../wire/shape.js'
import { wireTime } from '../wire/times.js'
import { timeOf, where } from './audit-routes.js'
import { periodOf } from './periods.js'

interface Row {
  readonly id: string
  readonly operation: string | null
  readonly scope: string
  readonly call_type: string
  readonly trace_id: string | null
  readonly model: string | null
  readonly status: string
  readonly error: string | null
  readonly started_at: number
  readonly duration_ms: number
  readonly input_tokens: number | null
  readonly output_tokens: number | null
}

const callTypes = oneOf('llm', 'embedding', 'rerank', 'decision')

const list: Handler = ({ core, params, query, ignored }) => {
  const given = readQuery(query, ignored, {
    status: maybe(text), operation: maybe(text), scope: maybe(text), call_type: maybe(callTypes), provider: maybe(text),
    trace_id: maybe(text),
    document_id: maybe(text), memory_id: maybe(text), group: optional(bool, false), start_date: maybe(text),
    end_date: maybe(text),
    limit: optional(int({ min: 1, max: 500 }), 50), offset: optional(int({ min: 0 }), 0)
  })
  const bank = needBank(core.store, params.bank_id!)
  const { clause, values } = where(bank.seq, [
    ['status = ?', given.status], ['operation = ?', given.operation], ['scope = ?', given.scope], ['call_type = ?', given.call_type],
    ['trace_id = ?', given.trace_id], ['started_at >= ?', timeOf('start_date', given.start_date)], ['started_at <= ?', timeOf('end_date', given.end_date)]
  ], 'bank')
  const { total } = core.store.get<{ total: number }>(`SELECT count(*) AS total FROM model_calls WHERE ${clause}`, values)!
  const rows = core.store.all<Row>(`SELECT * FROM model_calls WHERE ${clause} ORDER BY seq DESC LIMIT ? OFFSET ?`, [...values, given.limit, given.offset])
  return json({
    bank_id: bank.bank_id, total, limit: given.limit, offset: given.offset, items: rows.map(row => view(bank.bank_id, row))
  })
}

/** Neither questions nor answers are kept: what is deleted from a bank is not in its record. */
function view (bankId: string, row: Row): Record<string, unknown> {
  return {
    id: row.id, bank_id: bankId, operation: row.operation, scope: row.scope, trace_id: row.trace_id, span_id: row.id,
    parent_span_id: null,
    provider: 'svc', model: row.model, status: row.status, started_at: wireTime(row.started_at), ended_at: wireTime(row.started_at + row.duration_ms),
    duration_ms: row.duration_ms, input_tokens: row.input_tokens, output_tokens: row.output_tokens, cached_tokens: null,
    thoughts_tokens: null,
    total_tokens: (row.input_tokens ?? 0) + (row.output_tokens ?? 0), input: null, output: null, error: row.error,
    llm_info: { call_type: row.call_type }, metadata: {}
  }
}

const stats: Handler = ({ core, params, query, ignored }) => {
  const { operation, call_type: type, period } = readQuery(query, ignored, {
    operation: maybe(text), call_type: maybe(callTypes), period: optional(text, '7d')
  })
  const bank = needBank(core.store, params.bank_id!)
  const { trunc, start, stepMs } = periodOf(period, core.now())
  const { clause, values } = where(bank.seq, [['operation = ?', operation], ['call_type = ?', type], ['started_at >= ?', start]], 'bank')
  const rows = core.store.all<{ step: number, status: string, n: number, input: number, output: number }>(
    `SELECT started_at / ${stepMs} AS step, status, count(*) AS n, sum(input_tokens) AS input, sum(output_tokens) AS output
     FROM model_calls WHERE ${clause} GROUP BY 1, 2 ORDER BY 1`, values)
  const steps = new Map<number, typeof rows>()
  for (const row of rows) steps.set(row.step, [...steps.get(row.step) ?? [], row])
  return json({
    bank_id: bank.bank_id, period, trunc, start: wireTime(start),
    buckets: [...steps].map(([step, these]) => {
      const sum = (pick: (row: typeof rows[number]) => number): number => these.reduce((all, row) => all + pick(row), 0)
      const [input, output] = [sum(row => row.input), sum(row => row.output)]
      return {
        time: wireTime(step * stepMs), statuses: Object.fromEntries(
          these.map(row => [row.status, row.n])
        ), total: sum(row => row.n),
        tokens: { input, output, cached: 0, thoughts: 0, total: input + output }
      }
    })
  })
}

export const routes: readonly WireRoute[] = [
  { method: 'GET', path: `${BANK}/llm-requests`, handler: list },
  { method: 'GET', path: `${BANK}/llm-requests/stats`, handler: stats }
]
