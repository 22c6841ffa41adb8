import { chmod, mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import type Libsql from 'libsql'
import { messageOf } from 'svc-gateway/plugin'
import { boardError } from './errors.js'
import { migrations } from './migrations.js'

export type Cell = string | number | null

/** The database of the board. Values are always bound as a list: libsql takes a single object for named parameters. */
export class Database {
  readonly #connection: Libsql.Database
  readonly #statements = new Map<string, Libsql.Statement>()
  #depth = 0

  constructor (connection: Libsql.Database) {
    this.#connection = connection
  }

  all<T> (sql: string, ...values: readonly Cell[]): T[] {
    return this.#prepared(sql).all([...values]) as T[]
  }

  get<T> (sql: string, ...values: readonly Cell[]): T | undefined {
    return this.all<T>(sql, ...values)[0]
  }

  /** Returns how many rows were changed. */
  run (sql: string, ...values: readonly Cell[]): number {
    return this.#prepared(sql).run([...values]).changes
  }

  exec (sql: string): void {
    this.#connection.exec(sql)
  }

  /** Runs `work`, which must not wait, in one transaction; inside of another one it is part of that. */
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

  close (): void {
    this.#statements.clear()
    this.#connection.close()
  }

  /** All of them are written out in this folder, so they are few. */
  #prepared (sql: string): Libsql.Statement {
    const known = this.#statements.get(sql)
    if (known !== undefined) return known
    const statement = this.#connection.prepare(sql)
    this.#statements.set(sql, statement)
    return statement
  }
}

/** Opens the file, makes it if need be, and brings it to the present version. Rejects with `board.database_failed`. */
export async function openDatabase (path: string): Promise<Database> {
  let connection: Libsql.Database | null = null
  try {
    const [{ default: Driver }] = await Promise.all([import('libsql'), mkdir(dirname(path), { recursive: true, mode: 0o700 })])
    await open(path, 'a', 0o600).then(file => file.close())
    await chmod(path, 0o600)
    connection = new Driver(path)
    const database = new Database(connection)
    database.exec('PRAGMA busy_timeout = 5000')
    database.exec('PRAGMA journal_mode = WAL')
    // a cursor that a reader was told must not come again for other events, even after a power failure
    database.exec('PRAGMA synchronous = FULL')
    database.exec('PRAGMA foreign_keys = ON')
    migrate(database)
    return database
  } catch (error) {
    connection?.close()
    throw boardError('board.database_failed', `${path} cannot be opened: ${messageOf(error)}`, { cause: error })
  }
}

function migrate (database: Database): void {
  const { user_version: version } = database.get<{ user_version: number }>('PRAGMA user_version')!
  if (version > migrations.length) throw new Error('a newer release wrote it')
  for (const [i, sql] of migrations.entries()) {
    if (i < version) continue
    database.transaction(() => {
      database.exec(sql)
      database.exec(`PRAGMA user_version = ${i + 1}`)
    })
  }
}
