import type Libsql from 'libsql'

/** What a column holds. */
export type Cell = string | number | bigint | Buffer | null

interface Prepared {
  all (values: readonly Cell[]): unknown[]
  run (values: readonly Cell[]): { changes: number, lastInsertRowid: number | bigint }
}

const MOST_STATEMENTS = 400

/**
 * The one place where values are bound to statements. libsql takes a single object for named parameters, and a single
 * buffer for one too, which ends the process: here values are always an array.
 */
export class Store {
  readonly #connection: Libsql.Database
  readonly #statements = new Map<string, Prepared>()
  #depth = 0
  #writes = 0

  constructor (connection: Libsql.Database) {
    this.#connection = connection
  }

  all<T> (sql: string, values: readonly Cell[] = []): T[] {
    return this.#prepared(sql).all(whole(values)) as T[]
  }

  /** Grows with each statement that has changed rows, those that were taken back included. */
  get writes (): number { return this.#writes }

  /** The first row. */
  get<T> (sql: string, values: readonly Cell[] = []): T | undefined {
    return this.#prepared(sql).all(whole(values))[0] as T | undefined
  }

  /** How many rows were changed, by this statement and not by its triggers. */
  run (sql: string, values: readonly Cell[] = []): { readonly changes: number, readonly rowid: number } {
    const { changes, lastInsertRowid } = this.#prepared(sql).run(whole(values))
    if (changes > 0) this.#writes++
    return { changes, rowid: Number(lastInsertRowid) }
  }

  /** Changes these columns of the rows that `where` selects. A column that is undefined stays as it is. */
  update (table: string, columns: Readonly<Record<string, Cell | undefined>>, where: string, values: readonly Cell[]): void {
    const given = Object.entries(columns).filter((column): column is [string, Cell] => column[1] !== undefined)
    if (given.length === 0) return
    const set = given.map(([name]) => `${name} = ?`).join(', ')
    this.run(`UPDATE ${table} SET ${set} WHERE ${where}`, [...given.map(([, value]) => value), ...values])
  }

  /** Several statements without values. */
  exec (sql: string): void {
    this.#connection.exec(sql)
  }

  /**
   * Runs `work` in one transaction, which is rolled back when it throws. Inside of another one it is part of that.
   * `work` must not wait for anything.
   */
  transaction<T> (work: () => T): T {
    if (this.#depth > 0) return work()
    this.#connection.exec('BEGIN IMMEDIATE')
    this.#depth++
    try {
      const result = work()
      this.#connection.exec('COMMIT')
      return result
    } catch (error) {
      if (this.#connection.inTransaction) this.#connection.exec('ROLLBACK')
      throw error
    } finally {
      this.#depth--
    }
  }

  /** Folds the write-ahead log into the file. */
  close (): void {
    this.#statements.clear()
    try {
      this.#connection.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    } catch {
      // another process reads; the next one to open the file folds the log in
    }
    this.#connection.close()
  }

  #prepared (sql: string): Prepared {
    const known = this.#statements.get(sql)
    if (known !== undefined) return known
    const statement = this.#connection.prepare(sql) as unknown as Prepared
    if (this.#statements.size >= MOST_STATEMENTS) this.#statements.delete(this.#statements.keys().next().value!)
    this.#statements.set(sql, statement)
    return statement
  }
}

/** A NUL ends a bound text, and what stands behind it would be lost: it is left out alone. */
function whole (values: readonly Cell[]): readonly Cell[] {
  const isCut = values.some(value => typeof value === 'string' && value.includes('\0'))
  return isCut ? values.map(value => typeof value === 'string' ? value.replaceAll('\0', '') : value) : values
}
