import { randomUUID } from 'node:crypto'
import type { Store } from '../store/store.js'

export interface KeptFile {
  readonly filename: string
  readonly bytes: Buffer
}

const KEPT_EXPORTS = 5

/** Keeps an exported archive; older ones of the bank go. Returns its key. */
export function keepExport (store: Store, operation: string, bankId: string, filename: string, bytes: Buffer): string {
  const key = `banks/${bankId}/exports/${randomUUID()}/transfer.zip`
  store.run('INSERT INTO operation_files (key, operation, filename, bytes) VALUES (?, ?, ?, ?)', [key, operation, filename, bytes])
  store.run(`DELETE FROM operation_files WHERE operation IN (SELECT id FROM operations WHERE bank_id = ? AND type IN ('export_documents', 'export_bank')
    ORDER BY seq DESC LIMIT -1 OFFSET ${KEPT_EXPORTS})`, [bankId])
  return key
}

/** Keeps what was uploaded until its operation is done with it. */
export function keepUpload (store: Store, operation: string, { filename, bytes }: KeptFile): void {
  store.run('INSERT INTO operation_files (key, operation, filename, bytes) VALUES (?, ?, ?, ?)', [`uploads/${operation}`, operation, filename, bytes])
}

export function readUpload (store: Store, operation: string): KeptFile | null {
  return readFile(store, `uploads/${operation}`)
}

export function dropUpload (store: Store, operation: string): void {
  store.run('DELETE FROM operation_files WHERE key = ?', [`uploads/${operation}`])
}

export function readFile (store: Store, key: string): KeptFile | null {
  // libsql reads a blob as an ArrayBuffer
  const row = store.get<{ filename: string, bytes: ArrayBuffer }>('SELECT filename, bytes FROM operation_files WHERE key = ?', [key])
  return row === undefined ? null : { filename: row.filename, bytes: Buffer.from(row.bytes) }
}
