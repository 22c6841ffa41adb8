import type { z } from 'zod'
import { svcError, type ConfigRows, type Logger, type SvcError } from '../../contract/index.js'
import type { DraftFiles } from './draft-files.js'
import { checkShape, invalid } from '../check/shape-check.js'
import type { RowList } from '../schema/rows.js'
import { mergeTables } from './svc-writer.js'
import { isTable, type Table } from '../toml/toml-file.js'
import type { RowChange } from '../toml/toml-rows.js'
import { parseFailed } from '../files/write-errors.js'

/** A file below the configuration root that is one list of tables. */
export interface RowFile<S extends z.ZodType> extends RowList<S> {
  readonly file: string
}

/** The rows of one file on a draft (contract `ConfigRows`). Rows that are broken are rows anyway, and can be mended. */
export class DraftRows<S extends z.ZodType> implements ConfigRows<z.output<S>> {
  readonly #files: DraftFiles
  readonly #log: Logger
  readonly #list: RowFile<S>

  constructor (files: DraftFiles, log: Logger, list: RowFile<S>) {
    this.#files = files
    this.#log = log
    this.#list = list
  }

  async ids (): Promise<readonly string[]> {
    const { rows } = await this.#read()
    return rows.flatMap(row => this.#list.idOf(row) ?? [])
  }

  async create (given: Table): Promise<z.output<S>> {
    const { text, rows } = await this.#read()
    const row = mergeTables({}, given)
    const id = this.#list.idOf(row)
    const next = this.#checked(id ?? 'without a name', row)
    if (rows.some(other => this.#list.idOf(other) === id)) throw exists(String(id))
    await this.#change(text, { kind: 'add', row })
    return next
  }

  async patch (id: string, patch: Table): Promise<z.output<S>> {
    const { text, rows } = await this.#read()
    const index = this.#indexOf(rows, id)
    const old = rows[index]
    const row = mergeTables(isTable(old) ? old : {}, patch)
    const next = this.#checked(id, row)
    const nextId = this.#list.idOf(row)
    if (nextId !== id && rows.some(other => this.#list.idOf(other) === nextId)) throw exists(String(nextId))
    await this.#change(text, { kind: 'set', index, row })
    return next
  }

  async delete (id: string): Promise<void> {
    const { text, rows } = await this.#read()
    await this.#change(text, { kind: 'delete', index: this.#indexOf(rows, id) })
  }

  async #read (): Promise<{ readonly text: string, readonly rows: readonly unknown[] }> {
    const { file, key } = this.#list
    const found = await this.#files.toml(file)
    const rows = found?.data[key] ?? []
    if (!Array.isArray(rows)) throw parseFailed([{ file, path: key, message: `must be a list of tables, written [[${key}]]` }])
    return { text: found?.text ?? '', rows }
  }

  async #change (text: string, change: RowChange): Promise<void> {
    const { file, key } = this.#list
    const { patchRow } = await import('../toml/toml-rows.js')
    const next = patchRow(text, key, change, reason => {
      this.#log.warn({ file, reason }, 'the file was rewritten; its comments are lost')
    })
    if (next !== text) this.#files.put(file, next)
  }

  #checked (id: string, row: Table): z.output<S> {
    const { key, schema } = this.#list
    const { value, problems } = checkShape(schema, row, { audience: 'client', written: true })
    if (problems.length > 0) throw invalid(`${key} ${id}`, problems)
    return value as z.output<S>
  }

  /** Of two rows with one id the first is in force, so it is the one that is meant. */
  #indexOf (rows: readonly unknown[], id: string): number {
    const index = rows.findIndex(row => this.#list.idOf(row) === id)
    if (index === -1) throw svcError('upstream.not_found', `no such upstream: '${id}'; GET /api/upstreams lists them`, { details: { upstream: id } })
    return index
  }
}

function exists (id: string): SvcError {
  return svcError('upstream.already_exists', `upstream '${id}' already exists; change it, or choose another name`, { details: { upstream: id } })
}
