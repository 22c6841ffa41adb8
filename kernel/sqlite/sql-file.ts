import { chmodSync, closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'

/** What a column holds. */
export type SqlValue = string | number | bigint | Buffer | null

/** One version of the form of a file: SQL without values. Never changed once released. */
export type SqlVersion = string

export interface SqlFileOptions<F extends SqlFile = SqlFile> {
  /** Absolute. The file and its folder are made if need be, for the gateway's user alone. */
  readonly path: string
  /**
   * What brings a file to the form of this release: one text of SQL for each version, oldest first, each run in a transaction
   * with its number (`user_version`); or a function that does all of it and throws where it cannot.
   */
  readonly form: readonly SqlVersion[] | ((file: F) => void)
  /** After a power failure: `full` has every transaction that returned, `normal` may lack the last ones. No kill loses one. */
  readonly durability: 'full' | 'normal'
  /** Milliseconds that a statement waits while another program holds the file; default 5000. */
  readonly lockWaitMs?: number
  /** Further settings, such as `secure_delete = ON`. */
  readonly pragmas?: readonly string[]
  /** What the file is opened as: `SqlFile` unless it says otherwise. */
  readonly File?: new (connection: SqlConnection, lockWaitMs: number) => F
}

interface Statement {
  all (values: readonly SqlValue[]): unknown[]
  run (values: readonly SqlValue[]): { changes: number, lastInsertRowid: number | bigint }
}

/** As far as it is used of the connections of libsql, which has better-sqlite3's synchronous API. */
export interface SqlConnection {
  readonly inTransaction: boolean
  exec (sql: string): unknown
  prepare (sql: string): unknown
  close (): unknown
}

export type SqlDriver = new (path: string) => SqlConnection

const PRIVATE = 0o600
const PRIVATE_FOLDER = 0o700
const BUSY_TIMEOUT_MS = 5000
const MOST_STATEMENTS = 400

/**
 * A database in a file of its own. The one place where values are bound to statements: libsql takes a single object for
 * named parameters, and a single buffer for one too, which ends the process. Here values are always a list.
 */
export class SqlFile {
  readonly #connection: SqlConnection
  readonly #lockWaitMs: number
  readonly #statements = new Map<string, Statement>()
  #depth = 0
  #isClosed = false

  constructor (connection: SqlConnection, lockWaitMs = BUSY_TIMEOUT_MS) {
    this.#connection = connection
    this.#lockWaitMs = lockWaitMs
  }

  all<T> (sql: string, values: readonly SqlValue[] = []): T[] {
    return this.#prepared(sql).all(whole(values)) as T[]
  }

  /** The first row. */
  get<T> (sql: string, values: readonly SqlValue[] = []): T | undefined {
    return this.#prepared(sql).all(whole(values))[0] as T | undefined
  }

  /** How many rows were changed, by this statement and not by its triggers. */
  run (sql: string, values: readonly SqlValue[] = []): { readonly changes: number, readonly rowid: number } {
    const { changes, lastInsertRowid } = this.#prepared(sql).run(whole(values))
    return { changes, rowid: Number(lastInsertRowid) }
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
    // a writer waits at the start and never fails half-way for a lock
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

  /**
   * Folds the write-ahead log into the file and empties it: until then the log keeps what was deleted. Does not wait: false where
   * another connection is at the file, the disk takes nothing, or the file is closed.
   */
  foldLog (): boolean {
    if (this.#isClosed) return false
    try {
      this.#connection.exec('PRAGMA busy_timeout = 0')
      const [{ busy }] = this.#prepared('PRAGMA wal_checkpoint(TRUNCATE)').all([]) as [{ readonly busy: number }]
      return busy === 0
    } catch {
      return false
    } finally {
      this.#connection.exec(`PRAGMA busy_timeout = ${this.#lockWaitMs}`)
    }
  }

  /** Folds the write-ahead log into the file. */
  close (): void {
    this.#isClosed = true
    this.#statements.clear()
    try {
      this.#connection.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    } catch {
      // another process reads; the next one to open the file folds the log in
    }
    this.#connection.close()
  }

  #prepared (sql: string): Statement {
    const known = this.#statements.get(sql)
    if (known !== undefined) return known
    const statement = this.#connection.prepare(sql) as Statement
    if (this.#statements.size >= MOST_STATEMENTS) this.#statements.delete(this.#statements.keys().next().value!)
    this.#statements.set(sql, statement)
    return statement
  }
}

/** Opens a database, makes it if need be, and brings it to the form of this release. Rejects with why it cannot. */
export async function openSqlFile<F extends SqlFile = SqlFile> (options: SqlFileOptions<F>): Promise<F> {
  // a start that needs no database does not pay for it
  const { default: Driver } = await import('libsql')
  return openSqlFileWith(Driver, options)
}

/** The same for a thread of its own, which loads `libsql` by itself and has nothing to wait for. Throws why it cannot. */
export function openSqlFileWith<F extends SqlFile = SqlFile> (
  Driver: SqlDriver, { path, form, durability, lockWaitMs = BUSY_TIMEOUT_MS, pragmas = [], File }: SqlFileOptions<F>
): F {
  mkdirSync(dirname(path), { recursive: true, mode: PRIVATE_FOLDER })
  closeSync(openSync(path, 'a', PRIVATE))
  // SQLite gives its other files the mode of the first
  chmodSync(path, PRIVATE)
  const connection = new Driver(path)
  try {
    const file = File === undefined ? new SqlFile(connection, lockWaitMs) as F : new File(connection, lockWaitMs)
    file.exec(`PRAGMA busy_timeout = ${lockWaitMs}`)
    file.exec('PRAGMA journal_mode = WAL')
    file.exec(`PRAGMA synchronous = ${durability.toUpperCase()}`)
    file.exec('PRAGMA foreign_keys = ON')
    for (const pragma of pragmas) file.exec(`PRAGMA ${pragma}`)
    if (typeof form === 'function') form(file)
    else bringTo(file, form)
    return file
  } catch (error) {
    connection.close()
    throw error
  }
}

function bringTo (file: SqlFile, versions: readonly SqlVersion[]): void {
  const present = (): number => file.get<{ user_version: number }>('PRAGMA user_version')!.user_version
  if (present() > versions.length) throw new Error('a newer release wrote it')
  for (const [i, sql] of versions.entries()) {
    file.transaction(() => {
      // read inside of the transaction: another process may have run the step while this one waited
      if (present() > i) return
      file.exec(sql)
      file.exec(`PRAGMA user_version = ${i + 1}`)
    })
  }
}

/** A NUL ends a bound text, and what stands behind it would be lost: it is left out alone. */
function whole (values: readonly SqlValue[]): readonly SqlValue[] {
  const isCut = values.some(value => typeof value === 'string' && value.includes('\0'))
  return isCut ? values.map(value => typeof value === 'string' ? value.replaceAll('\0', '') : value) : values
}
