import { Boards } from './boards.js'
import type { Database } from './database.js'
import { EventLog } from './event-log.js'
import type { Board, BoardEvent, BoardView, BoardWords, NewTask, Orchestration, Task, TaskPatch, TaskStatus } from './ref.js'
import { taskStatuses } from './ref.js'
import { Tasks } from './tasks.js'

const unset: Orchestration = {
  orchestrator_profile: null, default_assignee: null, auto_decompose: false, auto_promote_children: true
}

/** The boards as a service: everything is in the database. */
export class BoardData implements Board {
  readonly database: Database
  readonly tasks: Tasks
  readonly log: EventLog
  readonly #boards: Boards

  /** @param now epoch seconds */
  constructor (database: Database, now: () => number) {
    this.database = database
    this.log = new EventLog(database, now)
    this.#boards = new Boards(database, now)
    this.tasks = new Tasks({ database, events: this.log, now, orchestration: () => this.orchestration() })
  }

  boards (): readonly BoardView[] { return this.#boards.list() }
  slugOf (board: string | undefined): string { return this.#boards.slugOf(board) }
  switchBoard (slug: string): void { this.#boards.switch(slug) }
  deleteBoard (slug: string): void { this.#boards.remove(slug) }

  createBoard (slug: string, words: BoardWords): BoardView { return this.#boards.create(slug, words) }
  changeBoard (slug: string, words: BoardWords): BoardView { return this.#boards.change(slug, words) }

  lanes (board: string, includeArchived: boolean): Partial<Record<TaskStatus, Task[]>> {
    const statuses = taskStatuses.filter(status => includeArchived || status !== 'archived')
    const lanes: Partial<Record<TaskStatus, Task[]>> = Object.fromEntries(statuses.map(status => [status, []]))
    for (const task of this.tasks.rows.list(board, includeArchived)) lanes[task.status]!.push(task)
    return lanes
  }

  task (board: string, id: string): Task { return this.tasks.get(board, id) }
  create (board: string, task: NewTask, actor: string): Task { return this.tasks.create(board, task, actor) }
  comment (board: string, id: string, author: string, body: string): Task { return this.tasks.comment(board, id, author, body) }
  link (board: string, parent: string, child: string): void { this.tasks.link(board, parent, child) }
  unlink (board: string, parent: string, child: string): void { this.tasks.unlink(board, parent, child) }

  change (board: string, id: string, patch: TaskPatch, actor: string, revision: number | null): Task {
    return this.tasks.change(board, id, patch, actor, revision)
  }

  changeAll (board: string, ids: readonly string[], patch: TaskPatch, actor: string): number {
    return this.tasks.changeAll(board, ids, patch, actor)
  }

  remove (board: string, id: string, actor: string, revision: number | null): void {
    this.tasks.remove(board, id, actor, revision)
  }

  stats (board: string): { readonly total: number, readonly by_status: Readonly<Record<string, number>> } {
    const rows = this.database.all<{ status: TaskStatus, count: number }>('SELECT status, count(*) AS count FROM tasks WHERE board = ? GROUP BY status', board)
    const counts = new Map(rows.map(({ status, count }) => [status, count]))
    return {
      total: rows.reduce((sum, { count }) => sum + count, 0),
      by_status: Object.fromEntries(taskStatuses.map(status => [status, counts.get(status) ?? 0]))
    }
  }

  orchestration (): Orchestration {
    const row = this.database.get<{ value: string }>('SELECT value FROM settings WHERE key = \'orchestration\'')
    return row === undefined ? unset : { ...unset, ...JSON.parse(row.value) as Partial<Orchestration> }
  }

  setOrchestration (patch: Partial<Orchestration>): Orchestration {
    const next = { ...this.orchestration(), ...patch }
    this.database.run('INSERT INTO settings (key, value) VALUES (\'orchestration\', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value', JSON.stringify(next))
    return next
  }

  events (board: string, since: number, limit: number): { readonly events: readonly BoardEvent[], readonly isGap: boolean } {
    return this.log.after(board, since, limit)
  }

  get cursor (): number { return this.log.cursor }
  readonly follow = (listener: () => void): () => void => this.log.follow(listener)
}
