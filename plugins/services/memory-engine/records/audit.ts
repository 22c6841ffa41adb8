import { randomUUID } from 'node:crypto'
import { configOf } from '../banks/config.js'
import type { Answered, Core } from '../core.js'
import { operationsOf } from '../operations/operations.js'
import { findBank } from '../store/bank-table.js'

/** What requests are called in the record, by method and the path behind the bank. Those that only read are not recorded. */
const actions: Readonly<Record<string, string>> = {
  'PUT ': 'create_bank', 'PATCH ': 'update_bank', 'POST /memories': 'retain', 'POST /memories/recall': 'recall', 'POST /reflect': 'reflect',
  'DELETE /memories': 'clear_memories', 'PATCH /memories/{memory_id}': 'update_memory', 'DELETE /memories/{memory_id}': 'delete_memory',
  'DELETE /memories/{memory_id}/observations': 'clear_memory_observations', 'DELETE /observations': 'clear_observations',
  'PATCH /documents/{document_id}': 'update_document', 'DELETE /documents/{document_id}': 'delete_document',
  'POST /documents/{document_id}/reprocess': 'reprocess_document', 'POST /files/retain': 'file_retain', 'PATCH /config': 'update_bank_config',
  'DELETE /config': 'reset_bank_config', 'POST /directives': 'create_directive', 'PATCH /directives/{directive_id}': 'update_directive',
  'DELETE /directives/{directive_id}': 'delete_directive', 'POST /mental-models': 'create_mental_model',
  'PATCH /mental-models/{mental_model_id}': 'update_mental_model', 'DELETE /mental-models/{mental_model_id}': 'delete_mental_model',
  'POST /mental-models/{mental_model_id}/refresh': 'refresh_mental_model', 'POST /mental-models/{mental_model_id}/clear': 'clear_mental_model',
  'POST /consolidate': 'trigger_consolidation', 'POST /consolidation/recover': 'recover_consolidation', 'POST /import': 'import_bank_template',
  'POST /document-transfer': 'import_documents', 'POST /document-transfer/export': 'export_documents', 'POST /transfer/export': 'export_bank',
  'POST /transfer/import': 'import_bank', 'POST /clone': 'clone_bank', 'POST /webhooks': 'create_webhook', 'PATCH /webhooks/{webhook_id}': 'update_webhook',
  'DELETE /webhooks/{webhook_id}': 'delete_webhook', 'DELETE /operations/{operation_id}': 'cancel_operation',
  'POST /operations/{operation_id}/retry': 'retry_operation', 'DELETE /operations/{operation_id}/delete': 'delete_operation',
  'POST /operations/{operation_id}/undo': 'undo_operation', 'POST /knowledge-base/folders': 'create_knowledge_folder',
  'POST /knowledge-base/pages': 'create_knowledge_page', 'PATCH /knowledge-base/nodes/{node_id}': 'update_knowledge_node',
  'DELETE /knowledge-base/nodes/{node_id}': 'delete_knowledge_node'
}
const BANK_PATH = '/v1/default/banks/{bank_id}'
/** How many lines of a bank are kept, at least about. */
export const KEPT_RECORDS = 5000
const FLUSH_MS = 500
/** After a disk that took nothing. */
const LATER_MS = 5_000
/** What waits for such a disk: older lines are let go. */
const MOST_WAITING = 5_000

interface Entry {
  readonly bankId: string
  readonly action: string
  readonly transport: 'http' | 'system'
  readonly startedAt: number
  readonly durationMs: number
  readonly facts: Readonly<Record<string, unknown>>
}

/**
 * The record of what was asked of each bank. It is written behind the answers, and before it is read; that something was deleted
 * or undone before the answer, and that an operation ended with its end.
 */
export class AuditLog {
  readonly #core: Core
  #waiting: Entry[] = []
  #timer: NodeJS.Timeout | null = null

  constructor (core: Core) {
    this.#core = core
    core.hooks.answered.push(answered => this.#answered(answered))
    operationsOf(core).ending.push(({ id, bankId, type, status }, lastTry) => {
      this.#write([{ bankId, action: type, transport: 'system', ...lastTry, facts: { operation_id: id, status } }])
    })
    // the database is closed after this
    core.closing.addEventListener('abort', () => this.flush(), { once: true })
  }

  add (entry: Entry): void {
    this.#waiting.push(entry)
    this.#flushIn(FLUSH_MS)
  }

  #flushIn (ms: number): void {
    this.#timer ??= setTimeout(() => this.flush(), ms).unref()
  }

  /** Never throws: what cannot be written is tried again later. */
  flush (): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    const entries = this.#waiting
    this.#waiting = []
    if (entries.length === 0) return
    try {
      this.#write(entries)
    } catch (error) {
      this.#core.log('warn', 'lines of the audit log of the memory engine could not be written and wait', { lines: entries.length, error: (error as Error).message })
      this.#waiting = entries.slice(-MOST_WAITING)
      if (!this.#core.closing.aborted) this.#flushIn(LATER_MS)
    }
  }

  #write (entries: readonly Entry[]): void {
    const { store } = this.#core
    store.transaction(() => {
      for (const entry of entries) {
        const bank = findBank(store, entry.bankId)
        // gone meanwhile, or it wants no record
        if (bank === undefined || configOf(bank).audit_log_enabled === false) continue
        const { rowid } = store.run('INSERT INTO audit_log (id, bank_id, action, transport, started_at, duration_ms, facts) VALUES (?, ?, ?, ?, ?, ?, ?)', [
          randomUUID(), entry.bankId, entry.action, entry.transport, entry.startedAt, Math.round(entry.durationMs),
          JSON.stringify(entry.facts)
        ])
        store.run('DELETE FROM audit_log WHERE bank_id = ? AND seq <= ?', [entry.bankId, rowid - KEPT_RECORDS])
      }
    })
  }

  #answered ({ method, route, params, status, startedAt, durationMs }: Answered): void {
    if (route === null || !route.startsWith(BANK_PATH) || status >= 400) return
    const action = actions[`${method} ${route.slice(BANK_PATH.length)}`]
    if (action === undefined) return
    this.add({ bankId: params.bank_id!, action, transport: 'http', startedAt, durationMs, facts: { status } })
    if (method === 'DELETE' || action.startsWith('clear') || action.startsWith('undo')) this.flush()
  }
}

const logs = new WeakMap<Core, AuditLog>()

export function auditLogOf (core: Core): AuditLog {
  let log = logs.get(core)
  if (log === undefined) logs.set(core, log = new AuditLog(core))
  return log
}

export function startAuditLog (core: Core): void {
  auditLogOf(core)
}
