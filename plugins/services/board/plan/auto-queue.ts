import type { Database } from '../database.js'
import type { TaskRow } from '../task-rows.js'

const MOST_TRIES = 3
/** Seconds from each try to the next. */
const WAITS_S = [60, 600]
const HOUR_S = 3600

/** A task that waits in `triage` to be decomposed. */
export interface WaitingTask {
  readonly task: string
  readonly board: string
  /** Who put it into `triage`. */
  readonly actor: string
  /** How often a model was asked. */
  readonly attempts: number
}

/**
 * Tasks that are to be decomposed by themselves, each once in its life: a row stays when its task was planned, or given up.
 * A try is counted before the model is asked, so that one that ends the gateway is not repeated for ever.
 */
export class AutoQueue {
  readonly #database: Database
  readonly #now: () => number

  constructor (database: Database, now: () => number) {
    this.#database = database
    this.#now = now
  }

  /** Part of the transaction that puts the task into `triage`. */
  add ({ id }: TaskRow, actor: string): void {
    this.#database.run('INSERT OR IGNORE INTO auto_plans (task, state, actor, next_at) VALUES (?, \'waiting\', ?, ?)', id, actor, this.#now())
  }

  /** Part of the transaction that plans the task, for whatever reason it is planned. */
  planned (task: string): void {
    this.#database.run(`INSERT INTO auto_plans (task, state, actor, next_at) VALUES (?, 'over', '', 0)
      ON CONFLICT (task) DO UPDATE SET state = 'over'`, task)
  }

  /** None of those that wait is asked for any more. */
  clear (): void {
    this.#database.run('DELETE FROM auto_plans WHERE state = \'waiting\'')
  }

  /** The most urgent whose time has come; null where there is none, or models were asked as often as they may be in an hour. */
  next (perHour: number): WaitingTask | null {
    const now = this.#now()
    this.#database.run('DELETE FROM auto_asks WHERE at <= ?', now - HOUR_S)
    const { count } = this.#database.get<{ count: number }>('SELECT count(*) AS count FROM auto_asks')!
    if (count >= perHour) return null
    return this.#database.get<WaitingTask>(`SELECT task, board, actor, attempts FROM auto_plans JOIN tasks ON tasks.id = task
      WHERE state = 'waiting' AND status = 'triage' AND next_at <= ? ORDER BY priority DESC, created, tasks.rowid LIMIT 1`, now) ?? null
  }

  /** Written before a model is asked. */
  asking ({ task, attempts }: WaitingTask): void {
    const now = this.#now()
    this.#database.transaction(() => {
      this.#database.run('INSERT INTO auto_asks (at) VALUES (?)', now)
      const wait = WAITS_S[attempts] ?? 0
      this.#database.run('UPDATE auto_plans SET attempts = attempts + 1, next_at = ? WHERE task = ?', now + wait, task)
    })
  }

  /** The try does not count: the gateway stops. */
  unasked ({ task }: WaitingTask): void {
    this.#database.run('UPDATE auto_plans SET attempts = attempts - 1, next_at = ? WHERE task = ?', this.#now(), task)
  }

  /** Whether a model was asked as often as it may be. */
  isTried (task: string): boolean {
    const row = this.#database.get<{ attempts: number }>('SELECT attempts FROM auto_plans WHERE task = ?', task)
    return row !== undefined && row.attempts >= MOST_TRIES
  }
}
