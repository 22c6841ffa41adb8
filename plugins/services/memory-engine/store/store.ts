import { SqlFile, type SqlValue } from 'svc-gateway/plugin'

/** What a column holds. */
export type Cell = SqlValue

/** What was counted when it was last looked at. */
interface Seen {
  readonly writes: number
  readonly count: number
  readonly others: number
}

const MOST_KEPT = 500
const LONGEST_KEY = 1000

/** The database of the memory. */
export class Store extends SqlFile {
  #writes = 0
  #changes = 0
  #seen: Seen = { writes: -1, count: -1, others: -1 }
  #wrote = (): void => {}
  readonly #kept = new Map<string, unknown>()
  #keptAt: Pick<Seen, 'writes' | 'others'> = { writes: -1, others: -1 }

  /** Grows with each statement that has changed rows, those that were taken back included. */
  get writes (): number { return this.#writes }

  /** Another number after each change of a memory that was there before: see `changes.ts`. */
  get changes (): number {
    if (this.#seen.writes !== this.#writes) this.#see({ ...this.#seen, writes: this.#writes, count: this.get<{ count: number }>('SELECT count FROM memory_changes')!.count })
    return this.#changes
  }

  /** Calls back after each statement that has changed rows. One listener; it must not write. */
  onWrite (listener: () => void): void {
    this.#wrote = listener
  }

  /** Counts what another program has written meanwhile as a change. */
  lookForOthers (): void {
    this.#see({ ...this.#seen, others: this.get<{ data_version: number }>('PRAGMA data_version')!.data_version })
  }

  /**
   * As `get`, of the little that nearly every request asks for: it is read once, until anything is written. What another program
   * writes shows from the next `lookForOthers` on. The row is shared: it must not be changed.
   */
  kept<T> (sql: string, values: readonly Cell[] = []): T | undefined {
    if (this.#keptAt.writes !== this.#writes || this.#keptAt.others !== this.#seen.others) {
      this.#kept.clear()
      this.#keptAt = { writes: this.#writes, others: this.#seen.others }
    }
    const key = sql + JSON.stringify(values)
    if (this.#kept.has(key)) return this.#kept.get(key) as T | undefined
    const row = this.get<T>(sql, values)
    if (this.#kept.size >= MOST_KEPT) this.#kept.clear()
    if (key.length <= LONGEST_KEY) this.#kept.set(key, row)
    return row
  }

  #see (seen: Seen): void {
    if (seen.count !== this.#seen.count || seen.others !== this.#seen.others) this.#changes++
    this.#seen = seen
  }

  override run (sql: string, values: readonly Cell[] = []): ReturnType<SqlFile['run']> {
    const result = super.run(sql, values)
    if (result.changes > 0) this.#written()
    return result
  }

  override exec (sql: string): void {
    super.exec(sql)
    this.#written()
  }

  #written (): void {
    this.#writes++
    this.#wrote()
  }

  override transaction<T> (work: () => T): T {
    try {
      return super.transaction(work)
    } catch (error) {
      // what was read meanwhile has been taken back
      this.#writes++
      throw error
    }
  }

  /**
   * The rows of `SELECT columns rest`, each as a list, for columns of text and numbers: they come as one text, which costs a
   * fifth of as many rows.
   */
  lists<T extends readonly unknown[]> (columns: string, rest: string, values: readonly Cell[] = []): T[] {
    return JSON.parse(this.get<{ rows: string }>(`SELECT json_group_array(json_array(${columns})) AS rows ${rest}`, values)!.rows) as T[]
  }

  /** Changes these columns of the rows that `where` selects. A column that is undefined stays as it is. */
  update (table: string, columns: Readonly<Record<string, Cell | undefined>>, where: string, values: readonly Cell[]): void {
    const given = Object.entries(columns).filter((column): column is [string, Cell] => column[1] !== undefined)
    if (given.length === 0) return
    const set = given.map(([name]) => `${name} = ?`).join(', ')
    this.run(`UPDATE ${table} SET ${set} WHERE ${where}`, [...given.map(([, value]) => value), ...values])
  }
}
