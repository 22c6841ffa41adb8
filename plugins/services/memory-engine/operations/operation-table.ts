import { randomUUID } from 'node:crypto'
import type { Core } from '../core.js'
import type { Cell, Store } from '../store/store.js'
import { wireTime } from '../wire/times.js'
import { parentStatus, type Operation, type OperationProgress, type OperationStatus, type OperationType } from './operation.js'

interface Row {
  readonly id: string
  readonly bank_id: string
  readonly type: OperationType
  readonly status: OperationStatus
  readonly parent_id: string | null
  readonly sub_batch_index: number | null
  readonly items_count: number
  readonly document_id: string | null
  readonly filename: string | null
  readonly mental_model_id: string | null
  readonly payload: string | null
  readonly result: string
  readonly details: string | null
  readonly error: string | null
  readonly retry_count: number
  readonly next_retry_at: number | null
  readonly progress: string | null
  readonly created_at: number
  readonly updated_at: number
  readonly completed_at: number | null
}

export interface NewOperation {
  readonly id?: string
  readonly bankId: string
  readonly type: OperationType
  readonly parentId?: string | null
  readonly subBatchIndex?: number
  readonly itemsCount?: number
  readonly documentId?: string | null
  readonly filename?: string | null
  readonly mentalModelId?: string | null
  readonly payload?: unknown
  readonly result?: Readonly<Record<string, unknown>>
}

export interface OperationFilter {
  readonly status?: string | null
  readonly type?: string | null
  readonly excludeParents?: boolean
  readonly limit: number
  readonly offset: number
}

const WITHOUT_PAYLOAD = `id, bank_id, type, status, parent_id, sub_batch_index, items_count, document_id, filename, mental_model_id,
  NULL AS payload, result, details, error, retry_count, next_retry_at, progress, created_at, updated_at, completed_at`

/** How many operations of a bank are kept when they are over. */
const KEPT = 1000

/** The rows of the queue. Every method is one statement or runs in the caller's transaction. */
export class OperationTable {
  readonly #store: Store
  readonly #now: () => number

  constructor ({ store, now }: Pick<Core, 'store' | 'now'>) {
    this.#store = store
    this.#now = now
  }

  add (operation: NewOperation): Operation {
    const { id = randomUUID(), bankId, type } = operation
    const now = this.#now()
    this.#store.run(`INSERT INTO operations (id, bank_id, type, status, parent_id, sub_batch_index, items_count, document_id, filename,
      mental_model_id, payload, result, created_at, updated_at) VALUES (?, ?, ?, 'pending', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, [
      id, bankId, type, operation.parentId ?? null, operation.subBatchIndex ?? null, operation.itemsCount ?? 0,
      operation.documentId ?? null, operation.filename ?? null, operation.mentalModelId ?? null,
      operation.payload === undefined ? null : JSON.stringify(operation.payload), JSON.stringify(operation.result ?? {}), now, now
    ])
    return this.get(id)!
  }

  get (id: string, bankId?: string): Operation | null {
    const row = this.#store.get<Row>('SELECT * FROM operations WHERE id = ?', [id])
    return row === undefined || (bankId !== undefined && row.bank_id !== bankId) ? null : operationOf(row)
  }

  list (bankId: string, filter: OperationFilter): { readonly total: number, readonly operations: readonly Operation[] } {
    const where = ['bank_id = ?']
    const values: Array<string | number> = [bankId]
    for (const key of ['status', 'type'] as const) {
      const value = filter[key]
      if (value === undefined || value === null) continue
      where.push(`${key} = ?`)
      values.push(value)
    }
    if (filter.excludeParents === true) where.push(`type != 'batch_retain'`)
    const clause = where.join(' AND ')
    const { total } = this.#store.get<{ total: number }>(`SELECT count(*) AS total FROM operations WHERE ${clause}`, values)!
    const rows = this.#store.all<Row>(`SELECT ${WITHOUT_PAYLOAD} FROM operations WHERE ${clause}
      ORDER BY seq DESC LIMIT ? OFFSET ?`, [...values, filter.limit, filter.offset])
    return { total, operations: rows.map(operationOf) }
  }

  children (parentId: string): readonly Operation[] {
    return this.#store.all<Row>(
      `SELECT ${WITHOUT_PAYLOAD} FROM operations WHERE parent_id = ? ORDER BY sub_batch_index`, [parentId]
    ).map(operationOf)
  }

  /** Whether a child of the same parent that comes before this one has failed. */
  hasFailedBefore ({ parentId, subBatchIndex }: Pick<Operation, 'parentId' | 'subBatchIndex'>): boolean {
    return this.#store.get(`SELECT 1 FROM operations WHERE parent_id = ? AND sub_batch_index < ? AND status = 'failed' LIMIT 1`,
      [parentId, subBatchIndex]) !== undefined
  }

  /**
   * Those of these types that may run now, the oldest of each bank and type, oldest first: what waits in one bank hides nothing
   * of another. A parent never does: its children do, each after those before it.
   */
  runnable (types: readonly OperationType[], limit: number): ReadonlyArray<Pick<Operation, 'id' | 'bankId' | 'type'>> {
    return this.#store.all<Row>(`WITH RECURSIVE kinds (bank_id, type) AS (
        SELECT * FROM (SELECT bank_id, type FROM operations WHERE status = 'pending' ORDER BY bank_id, type LIMIT 1)
        UNION ALL
        SELECT o.bank_id, o.type FROM kinds JOIN operations o ON o.seq = coalesce(
          (SELECT seq FROM operations WHERE status = 'pending' AND bank_id = kinds.bank_id AND type > kinds.type ORDER BY type LIMIT 1),
          (SELECT seq FROM operations WHERE status = 'pending' AND bank_id > kinds.bank_id ORDER BY bank_id, type LIMIT 1))
      )
      SELECT o.id, o.bank_id, o.type FROM kinds JOIN operations o ON o.seq = (SELECT seq FROM operations one
        WHERE status = 'pending' AND bank_id = kinds.bank_id AND type = kinds.type AND (next_retry_at IS NULL OR next_retry_at <= ?)
          AND NOT EXISTS (SELECT 1 FROM operations before WHERE before.status = 'pending' AND before.parent_id = one.parent_id
            AND before.sub_batch_index < one.sub_batch_index)
        ORDER BY seq LIMIT 1)
      WHERE kinds.type != 'batch_retain' AND kinds.type IN (SELECT value FROM json_each(?))
      ORDER BY o.seq LIMIT ?`, [this.#now(), JSON.stringify(types), limit])
      .map(({ id, bank_id: bankId, type }) => ({ id, bankId, type }))
  }

  /** When the next one may run that waits for its pause to end; null if none does. */
  nextRetryAt (): number | null {
    return this.#store.get<{ at: number | null }>(`SELECT min(next_retry_at) AS at FROM operations
      WHERE status = 'pending' AND next_retry_at > ?`, [this.#now()])?.at ?? null
  }

  /** One of this kind that waits in the bank, not yet begun. */
  waiting (bankId: string, type: OperationType, mentalModelId?: string): Operation | null {
    const [index, ofModel, models] = mentalModelId === undefined ? ['lanes', '', []] : ['refreshes', 'AND mental_model_id = ?', [mentalModelId]]
    const row = this.#store.get<Row>(`SELECT * FROM operations INDEXED BY operations_${index}
      WHERE bank_id = ? ${ofModel} AND type = ? AND status = 'pending' ORDER BY seq LIMIT 1`, [bankId, ...models, type])
    return row === undefined ? null : operationOf(row)
  }

  /** How far one of this type is that waits or runs in the bank; null if there is none. */
  openStatus (bankId: string, type: OperationType): 'pending' | 'processing' | null {
    return this.#store.get<{ status: 'pending' | 'processing' }>(`SELECT status FROM operations INDEXED BY operations_kinds
      WHERE bank_id = ? AND type = ? AND status IN ('pending', 'processing') ORDER BY status DESC LIMIT 1`, [bankId, type])?.status ?? null
  }

  /** The banks that imports are to fill, or do. */
  importing (): ReadonlySet<string> {
    return new Set(this.#store.all<{ bank: string }>(`SELECT coalesce(CASE type WHEN 'import_bank'
        THEN json_extract(payload, '$.target.bankId') END, bank_id) AS bank
      FROM operations WHERE status IN ('pending', 'processing') AND type IN ('import_documents', 'import_bank')`).map(({ bank }) => bank))
  }

  begin (id: string): void {
    this.#set(id, { status: 'processing', error: null, next_retry_at: null })
  }

  complete (id: string, result: Readonly<Record<string, unknown>>, details: Readonly<Record<string, unknown>> | null): void {
    const now = this.#now()
    this.#set(id, {
      status: 'completed', payload: null, error: null, completed_at: now, next_retry_at: null,
      result: JSON.stringify({ ...this.get(id)!.result, ...result }), ...details !== null && { details: JSON.stringify(details) }
    })
  }

  fail (id: string, error: string, details: Readonly<Record<string, unknown>> | null): void {
    this.#set(id, {
      status: 'failed', error, completed_at: this.#now(), next_retry_at: null,
      ...details !== null && { details: JSON.stringify(details) }
    })
  }

  postpone (id: string, retryCount: number, error: string, nextRetryAt: number): void {
    this.#set(id, { status: 'pending', error, retry_count: retryCount, next_retry_at: nextRetryAt })
  }

  keep (id: string, payload: unknown): void {
    this.#set(id, { payload: JSON.stringify(payload) })
  }

  cancel (id: string): void {
    this.#set(id, { status: 'cancelled', payload: null, completed_at: this.#now(), next_retry_at: null })
  }

  /** All of a type that wait or run, in every bank; of a type that has neither parents nor children. Returns how many. */
  cancelAll (type: OperationType): number {
    const now = this.#now()
    return this.#store.run(`UPDATE operations SET status = 'cancelled', payload = NULL, completed_at = ?, next_retry_at = NULL, updated_at = ?
      WHERE status IN ('pending', 'processing') AND type = ?`, [now, now, type]).changes
  }

  /** Pending as on its first day. */
  restart (id: string): void {
    this.#set(id, {
      status: 'pending', error: null, details: null, retry_count: 0, next_retry_at: null, completed_at: null, progress: null
    })
  }

  progress (id: string, progress: OperationProgress): void {
    this.#set(id, { progress: JSON.stringify(progress) })
  }

  /** What ran when the process ended runs again, and so does all that is processing but for what runs now. */
  resume (running: readonly string[]): void {
    this.#store.run(`UPDATE operations SET status = 'pending' WHERE status IN ('pending', 'processing') AND status = 'processing' AND type != 'batch_retain'
      AND id NOT IN (SELECT value FROM json_each(?))`, [JSON.stringify(running)])
  }

  /**
   * Brings a parent to the state of its children, and its progress to the items of those that are done. It is told at both ends
   * of each: what stands behind the payload in a row is not read before all of them have ended.
   */
  settleParent (parentId: string): void {
    const children = this.#store.all<{ status: OperationStatus, items: number }>(
      'SELECT status, sum(items_count) AS items FROM operations WHERE parent_id = ? GROUP BY status', [parentId])
    const parent = this.get(parentId)
    if (parent === null || children.length === 0) return
    const status = parentStatus(children.map(child => child.status))
    const processed = children.find(child => child.status === 'completed')?.items ?? 0
    if (status === parent.status && processed === parent.progress?.processed) return
    const total = children.reduce((sum, { items }) => sum + items, 0)
    const progress: OperationProgress = { stage: 'retaining', at: wireTime(this.#now()), processed, total, detail: null }
    const over = status === 'completed' || status === 'failed' || status === 'cancelled'
    this.#set(parentId, {
      status, error: this.#firstError(parentId), completed_at: over ? this.#now() : null,
      result: JSON.stringify({ ...parent.result, ...status === 'completed' && this.#resultOf(parentId) }),
      progress: JSON.stringify(progress)
    })
  }

  #firstError (parentId: string): string | null {
    return this.#store.get<{ error: string | null }>(`SELECT error FROM operations
      WHERE parent_id = ? AND status = 'failed' ORDER BY sub_batch_index LIMIT 1`, [parentId])?.error ?? null
  }

  #resultOf (parentId: string): Readonly<Record<string, number>> {
    const sumOf = (key: string): string => `coalesce(sum(json_extract(result, '$.${key}')), 0) AS ${key}`
    return this.#store.get(`SELECT ${['unit_ids_count', 'extraction_errors_count'].map(sumOf).join(', ')} FROM operations WHERE parent_id = ?`,
      [parentId])!
  }

  delete (id: string): void {
    this.#store.run('DELETE FROM operations WHERE id = ? OR parent_id = ?', [id, id])
  }

  /**
   * Forgets the oldest of those that are over, but for parts of what goes on, whose progress is the sum of theirs, and for
   * cancelled embeddings, which can be tried again.
   */
  prune (bankId: string): void {
    this.#store.run(`DELETE FROM operations WHERE bank_id = ? AND status IN ('completed', 'cancelled') AND (status = 'completed' OR type <> 'embedding') AND seq <=
      (SELECT seq FROM operations WHERE bank_id = ? ORDER BY seq DESC LIMIT 1 OFFSET ${KEPT})
      AND NOT EXISTS (SELECT 1 FROM operations p WHERE p.id = operations.parent_id AND p.status NOT IN ('completed', 'cancelled'))`, [bankId, bankId])
  }

  byStatus (bankId: string): Readonly<Record<string, number>> {
    const rows = this.#store.all<{ status: string, n: number }>(
      'SELECT status, count(*) AS n FROM operations WHERE bank_id = ? GROUP BY status', [bankId]
    )
    return Object.fromEntries(rows.map(({ status, n }) => [status, n]))
  }

  #set (id: string, values: Readonly<Record<string, Cell>>): void {
    this.#store.update('operations', { ...values, updated_at: this.#now() }, 'id = ?', [id])
  }
}

function operationOf (row: Row): Operation {
  return {
    id: row.id,
    bankId: row.bank_id,
    type: row.type,
    status: row.status,
    parentId: row.parent_id,
    subBatchIndex: row.sub_batch_index,
    itemsCount: row.items_count,
    documentId: row.document_id,
    filename: row.filename,
    mentalModelId: row.mental_model_id,
    payload: parsed(row.payload),
    result: (parsed(row.result) ?? {}) as Record<string, unknown>,
    details: parsed(row.details) as Record<string, unknown> | null,
    error: row.error,
    retryCount: row.retry_count,
    nextRetryAt: row.next_retry_at,
    progress: parsed(row.progress) as OperationProgress | null,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    completedAt: row.completed_at
  }
}

function parsed (text: string | null): unknown {
  return text === null ? null : JSON.parse(text)
}
