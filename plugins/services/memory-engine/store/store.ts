import { SqlFile, type SqlValue } from 'svc-gateway/plugin'

/** What a column holds. */
export type Cell = SqlValue

/** What was counted when it was last looked at. */
interface Seen {
  readonly writes: number
  readonly count: number
  readonly others: number
}

/** The database of the memory. */
export class Store extends SqlFile {
  #writes = 0
  #changes = 0
  #seen: Seen = { writes: -1, count: -1, others: -1 }

  /** Grows with each statement that has changed rows, those that were taken back included. */
  get writes (): number { return this.#writes }

  /** Another number after each change of a memory that was there before: see `changes.ts`. */
  get changes (): number {
    if (this.#seen.writes !== this.#writes) this.#see({ ...this.#seen, writes: this.#writes, count: this.get<{ count: number }>('SELECT count FROM memory_changes')!.count })
    return this.#changes
  }

  /** Counts what another program has written meanwhile as a change. */
  lookForOthers (): void {
    this.#see({ ...this.#seen, others: this.get<{ data_version: number }>('PRAGMA data_version')!.data_version })
  }

  #see (seen: Seen): void {
    if (seen.count !== this.#seen.count || seen.others !== this.#seen.others) this.#changes++
    this.#seen = seen
  }

  override run (sql: string, values: readonly Cell[] = []): ReturnType<SqlFile['run']> {
    const result = super.run(sql, values)
    if (result.changes > 0) this.#writes++
    return result
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
