import { randomBytes } from 'node:crypto'
import type { Database } from './database.js'
import { boardError } from './errors.js'
import type { RunState, RunView } from './ref.js'
import { runView, type RunRow, type TaskRow } from './task-rows.js'
import type { Tasks } from './tasks.js'

const MOST_LOG = 256 * 1024
const KEPT_RUNS = 50

/** What a run leaves of its task. */
export type Ending =
  | { readonly state: 'done', readonly message: string }
  | { readonly state: Exclude<RunState, 'running' | 'done'>, readonly message: string }

export interface Claim {
  readonly run: string
  readonly task: TaskRow
  readonly agent: string
}

/** With the agent that it waits for. */
type ReadyTask = TaskRow & { readonly agent: string }

/** The attempts of agents. One that is `running` is the claim to its task; it is in the database before the agent is started. */
export class Runs {
  readonly #database: Database
  readonly #tasks: Tasks
  readonly #now: () => number

  constructor (database: Database, tasks: Tasks, now: () => number) {
    this.#database = database
    this.#tasks = tasks
    this.#now = now
  }

  /** Throws `board.run_not_found`. */
  get (board: string, id: string): RunView & { readonly task_id: string } {
    const row = this.#database.get<RunRow>('SELECT runs.* FROM runs JOIN tasks ON tasks.id = task WHERE runs.id = ? AND board = ?', id, board)
    if (row === undefined) throw boardError('board.run_not_found', `board '${board}' has no run '${id}'`, { details: { run: id } })
    return { ...runView(row), task_id: row.task }
  }

  /** All that run, oldest first. */
  running (): readonly RunRow[] {
    return this.#database.all<RunRow>('SELECT * FROM runs WHERE state = \'running\' ORDER BY rowid')
  }

  /**
   * The tasks that wait for one of these agents, the most urgent first.
   * @param byDefault who gets those without an assignee
   */
  ready (agents: readonly string[], byDefault: string | null, limit: number): readonly ReadyTask[] {
    return this.#database.all<ReadyTask>(`SELECT *, coalesce(assignee, profile, ?) AS agent FROM tasks
      WHERE status = 'ready' AND agent IN (SELECT value FROM json_each(?)) ORDER BY priority DESC, created, rowid LIMIT ?`,
    byDefault, JSON.stringify(agents), limit)
  }

  /** Tasks whose time has come are ready, or wait in `todo` for what they depend on. */
  wakeScheduled (): void {
    this.#database.transaction(() => {
      for (const row of this.#database.all<TaskRow>('SELECT * FROM tasks WHERE status = \'scheduled\' AND schedule <= ?', this.#now())) {
        const status = this.#tasks.mayStart(row.id) ? 'ready' : 'todo'
        this.#tasks.set(row.id, { status })
        this.#tasks.note(row, 'updated', { actor: 'system', status })
      }
    })
  }

  /** Null when the task is not ready any more. */
  claim (id: string, agent: string): Claim | null {
    return this.#database.transaction(() => {
      const task = this.#tasks.rows.find(id)
      if (task?.status !== 'ready') return null
      const run = `r_${randomBytes(8).toString('hex')}`
      this.#database.run('INSERT INTO runs (id, task, agent, state, started) VALUES (?, ?, ?, \'running\', ?)', run, id, agent, this.#now())
      const old = 'SELECT id FROM runs WHERE task = ? ORDER BY rowid DESC LIMIT -1 OFFSET ?'
      this.#database.run(`DELETE FROM runs WHERE id IN (${old})`, id, KEPT_RUNS)
      this.#tasks.set(id, { status: 'running' })
      this.#tasks.note(task, 'updated', { actor: 'system', status: 'running', run, profile: agent })
      return { run, task, agent }
    })
  }

  /** Kept for a gateway that comes after this one. */
  keep (run: string, handle: string): void {
    this.#database.run('UPDATE runs SET handle = ? WHERE id = ?', handle.slice(0, 4096), run)
  }

  /** The last 256 KiB stay. */
  addLog (run: string, text: string): void {
    this.#database.run('UPDATE runs SET log = substr(log || ?, ?) WHERE id = ?', text, -MOST_LOG, run)
  }

  /** Of the last run of a task; empty where there was none. */
  log (task: string): string {
    return this.#database.get<{ log: string }>('SELECT log FROM runs WHERE task = ? ORDER BY rowid DESC LIMIT 1', task)?.log ?? ''
  }

  /**
   * Ends a run, once; the task goes on from there if it is still this run's: done, ready for another try, or blocked after
   * `failureLimit` in a row. A gateway that ended holds nothing against a task.
   */
  end (run: string, { state, message }: Ending, failureLimit: number): void {
    this.#database.transaction(() => {
      const row = this.#database.get<RunRow>('SELECT * FROM runs WHERE id = ?', run)
      if (row?.state !== 'running') return
      this.#database.run('UPDATE runs SET state = ?, ended = ?, message = ?, handle = NULL WHERE id = ?', state, this.#now(), message, run)
      const task = this.#tasks.rows.find(row.task)!
      if (task.status !== 'running') return
      const failures = state === 'done' ? 0 : task.failures + (state === 'failed' || state === 'timed_out' ? 1 : 0)
      const status = state === 'done' ? 'done' : failures >= failureLimit ? 'blocked' : 'ready'
      this.#tasks.set(task.id, {
        status, failures, ...(status === 'done' && message !== '' ? { summary: message } : {}),
        ...(status === 'blocked' ? { block_reason: `${failures} runs failed, the last with: ${message}`.slice(0, 2000) } : {})
      })
      this.#tasks.note(task, 'updated', { actor: 'system', status, run, state })
    })
  }
}
