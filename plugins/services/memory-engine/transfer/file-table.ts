import { randomUUID } from 'node:crypto'
import type { Store } from '../store/store.js'
import type { ZipSink } from './zip-writer.js'

export interface KeptFile {
  readonly filename: string
  readonly bytes: Buffer
}

const KEPT_EXPORTS = 5
const PART_BYTES = 1024 * 1024
/** The parts of an archive's directory are numbered from here. */
const DIRECTORY_FROM = 2 ** 40

const DELETED = 'a memory of the bank was deleted while the bank was exported'

/**
 * The archive of a bank that an operation writes, in parts of a mebibyte in the database. What an earlier try of it left is gone.
 * It has its row from the start: a memory that is deleted meanwhile takes the row, as it takes those of finished archives, unless
 * it is of a document that is still to be read.
 */
export class ExportFile implements ZipSink {
  readonly #store: Store
  readonly #bankId: string
  readonly #operation: string
  readonly #key: string
  readonly #ends = { data: new Part(0), directory: new Part(DIRECTORY_FROM) }
  /** So far. */
  size = 0

  constructor (store: Store, bankId: string, operation: string) {
    this.#store = store
    this.#bankId = bankId
    this.#operation = operation
    this.#key = `banks/${bankId}/exports/${randomUUID()}/transfer.zip`
    store.run('DELETE FROM operation_files WHERE operation = ?', [operation])
    store.run('DELETE FROM operation_file_parts WHERE operation = ?', [operation])
    store.run('INSERT INTO operation_files (key, operation, filename, bytes) VALUES (?, ?, \'\', zeroblob(0))', [this.#key, operation])
  }

  /**
   * Documents up to this number are read from now on, and later ones are not; null for anything. Throws where a memory that may
   * be in the archive was deleted.
   */
  reads (upto: number | null): void {
    const { changes } = this.#store.run('UPDATE operation_files SET read_upto = ? WHERE key = ?', [upto, this.#key])
    if (changes === 0) throw new Error(DELETED)
  }

  data (bytes: Buffer): void {
    this.#add(this.#ends.data, bytes)
  }

  directory (bytes: Buffer): void {
    this.#add(this.#ends.directory, bytes)
  }

  /**
   * Keeps the archive; older ones of the bank go. In the transaction that ends the operation. Returns its key. Throws where a
   * memory of the bank was deleted since the archive was begun: it may be in there.
   */
  keep (filename: string): string {
    for (const end of Object.values(this.#ends)) this.#flush(end)
    const { changes } = this.#store.run('UPDATE operation_files SET filename = ? WHERE key = ?', [filename, this.#key])
    if (changes === 0) throw new Error(DELETED)
    this.#store.run(`DELETE FROM operation_files WHERE operation IN (SELECT id FROM operations WHERE bank_id = ? AND type IN ('export_documents', 'export_bank')
      ORDER BY seq DESC LIMIT -1 OFFSET ${KEPT_EXPORTS})`, [this.#bankId])
    return this.#key
  }

  #add (end: Part, bytes: Buffer): void {
    this.size += bytes.length
    end.held.push(bytes)
    end.bytes += bytes.length
    if (end.bytes >= PART_BYTES) this.#flush(end)
  }

  #flush (end: Part): void {
    if (end.bytes === 0) return
    this.#store.run('INSERT INTO operation_file_parts (operation, part, bytes) VALUES (?, ?, ?)', [this.#operation, end.number, Buffer.concat(end.held)])
    end.number += 1
    end.held = []
    end.bytes = 0
  }
}

class Part {
  number: number
  held: Buffer[] = []
  bytes = 0

  constructor (number: number) {
    this.number = number
  }
}

/** An exported archive by its key, with what reads it part by part; null if there is none. */
export function findExport (store: Store, key: string): {
  readonly filename: string
  readonly size: number
  readonly parts: () => AsyncGenerator<Buffer>
} | null {
  const file = store.get<{ filename: string, operation: string, size: number }>('SELECT filename, operation, length(bytes) AS size FROM operation_files WHERE key = ? AND filename <> \'\'', [key])
  if (file === undefined) return null
  const { filename, operation } = file
  // one of a release before stands in its row
  if (file.size > 0) return { filename, size: file.size, parts: async function* () { yield readFile(store, key)!.bytes } }
  const { size } = store.get<{ size: number }>('SELECT coalesce(sum(length(bytes)), 0) AS size FROM operation_file_parts WHERE operation = ?', [operation])!
  return { filename, size, parts: () => partsOf(store, operation, size) }
}

async function* partsOf (store: Store, operation: string, size: number): AsyncGenerator<Buffer> {
  let [after, left] = [-1, size]
  while (left > 0) {
    const row = store.get<{ part: number, bytes: ArrayBuffer }>('SELECT part, bytes FROM operation_file_parts WHERE operation = ? AND part > ? ORDER BY part LIMIT 1', [operation, after])
    if (row === undefined) throw new Error('the archive was deleted while it was read')
    after = row.part
    left -= row.bytes.byteLength
    yield Buffer.from(row.bytes)
  }
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

function readFile (store: Store, key: string): KeptFile | null {
  // libsql reads a blob as an ArrayBuffer
  const row = store.get<{ filename: string, bytes: ArrayBuffer }>('SELECT filename, bytes FROM operation_files WHERE key = ?', [key])
  return row === undefined ? null : { filename: row.filename, bytes: Buffer.from(row.bytes) }
}
