import { LogFolding, SqlFile, type Clock, type SqlValue } from 'svc-gateway/plugin'

/** What takes a text away: rows below the deleted ones go with them. */
const FORGETS = /^(?:DELETE|UPDATE responses SET response)/

/**
 * A database whose deletions reach its write-ahead log soon. Other writes leave the log to SQLite: to fold it is a write to the
 * disk that all of the gateway waits for.
 */
export class ForgettingFile extends SqlFile {
  #folding: LogFolding | null = null

  foldLogWith (clock: Pick<Clock, 'setTimer'>): void {
    this.#folding = new LogFolding(this, clock)
  }

  override run (sql: string, values: readonly SqlValue[] = []): ReturnType<SqlFile['run']> {
    const result = super.run(sql, values)
    if (result.changes > 0 && FORGETS.test(sql)) this.#folding?.wrote()
    return result
  }

  /** As `run`, of what no client asked to be gone: a full store does this with each response, and the log may keep it a while. */
  evict (sql: string, values: readonly SqlValue[]): void {
    super.run(sql, values)
  }

  override close (): void {
    this.#folding?.stop()
    super.close()
  }
}
