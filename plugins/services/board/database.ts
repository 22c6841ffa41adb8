import { messageOf, openSqlFile, type SqlFile, type SqlValue } from 'svc-gateway/plugin'
import { boardError } from './errors.js'
import { migrations } from './migrations.js'

export type Cell = Exclude<SqlValue, bigint | Buffer>

/** The database of the board. */
export class Database {
  readonly #file: SqlFile

  constructor (file: SqlFile) {
    this.#file = file
  }

  all<T> (sql: string, ...values: readonly Cell[]): T[] {
    return this.#file.all(sql, values)
  }

  get<T> (sql: string, ...values: readonly Cell[]): T | undefined {
    return this.#file.get(sql, values)
  }

  /** Returns how many rows were changed. */
  run (sql: string, ...values: readonly Cell[]): number {
    return this.#file.run(sql, values).changes
  }

  exec (sql: string): void {
    this.#file.exec(sql)
  }

  /** Runs `work`, which must not wait, in one transaction; inside of another one it is part of that. */
  transaction<T> (work: () => T): T {
    return this.#file.transaction(work)
  }

  close (): void {
    this.#file.close()
  }
}

/** Opens the file, makes it if need be, and brings it to the present version. Rejects with `board.database_failed`. */
export async function openDatabase (path: string): Promise<Database> {
  try {
    // a cursor that a reader was told must not come again for other events, even after a power failure
    return new Database(await openSqlFile({ path, form: migrations, durability: 'full' }))
  } catch (error) {
    throw boardError('board.database_failed', `${path} cannot be opened: ${messageOf(error)}`, { cause: error })
  }
}
