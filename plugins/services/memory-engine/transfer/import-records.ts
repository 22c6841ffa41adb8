import { randomUUID } from 'node:crypto'
import { configOf } from '../banks/config.js'
import type { Core } from '../core.js'
import { KEPT_RECORDS } from '../records/audit.js'
import type { BankRow } from '../store/bank-table.js'
import { UUID } from '../wire/uuid.js'
import { optional, text, time, whole, wrong, type JsonRow } from './checked.js'

/** A line of the record of what was asked of a bank. Times in epoch ms. */
export interface AuditRecord {
  readonly id: string | null
  readonly action: string
  readonly transport: string
  readonly startedAt: number
  readonly durationMs: number
}

const LONGEST = 100

/** Of an archive. A server tells when a request ended, and has requests and answers besides, which are not kept here. */
export function recordOf (row: JsonRow, at: string): AuditRecord {
  const startedAt = Date.parse(time(row.started_at, `${at}.started_at`) ?? '')
  if (Number.isNaN(startedAt)) throw wrong(`${at}.started_at`, 'an ISO time')
  const ended = time(row.ended_at, `${at}.ended_at`)
  const took = ended === null ? 0 : Math.max(0, Date.parse(ended) - startedAt)
  return {
    id: optional(row.id, `${at}.id`),
    action: text(row.action, `${at}.action`).slice(0, LONGEST),
    transport: text(row.transport, `${at}.transport`).slice(0, LONGEST),
    startedAt,
    durationMs: row.duration_ms == null ? took : whole(row.duration_ms, `${at}.duration_ms`)
  }
}

/**
 * Adds the newest of them to the record of the bank, marked as brought: an archive may claim what it will. Those that it has stay
 * as they are, and an id that another bank has is replaced. In the caller's transaction, in one statement for all.
 */
export function importRecords ({ store }: Core, bank: BankRow, records: readonly AuditRecord[]): void {
  if (records.length === 0 || configOf(bank).audit_log_enabled === false) return
  const rows = records.slice(-KEPT_RECORDS).map(record => {
    const spare = randomUUID()
    return { ...record, spare, id: record.id !== null && UUID.test(record.id) ? record.id : spare }
  })
  store.run(`INSERT OR IGNORE INTO audit_log (id, bank_id, action, transport, started_at, duration_ms, facts)
    SELECT CASE WHEN EXISTS (SELECT 1 FROM audit_log WHERE id = value ->> 'id') THEN value ->> 'spare' ELSE value ->> 'id' END, ?,
      value ->> 'action', value ->> 'transport', value ->> 'startedAt', value ->> 'durationMs', '{"imported":true}'
    FROM json_each(?) WHERE NOT EXISTS (SELECT 1 FROM audit_log WHERE id = value ->> 'id' AND bank_id = ?)`,
  [bank.bank_id, JSON.stringify(rows), bank.bank_id])
}
