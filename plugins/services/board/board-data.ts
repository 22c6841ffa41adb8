import { Boards } from './boards.js'
import type { Database } from './database.js'
import { EventLog } from './event-log.js'
import type { Board, BoardEvent, BoardView, BoardWords, NewTask, Orchestration, OrchestrationPatch, Task, TaskPatch, TaskStatus } from './ref.js'
import { taskStatuses } from './ref.js'
import { Dispatch } from './dispatch.js'
import { AutoPlans, type AutoPlanDeps } from './plan/auto-plans.js'
import { AutoQueue } from './plan/auto-queue.js'
import { Plans, type PlanDeps } from './plan/plans.js'
import { Runs } from './runs.js'
import { Tasks } from './tasks.js'
import { Work, type WorkDeps } from './work.js'

const unset: Orchestration = {
  default_assignee: null, auto_promote_children: true, auto_decompose: false, orchestrator_profile: null
}

/** The boards as a service: everything is in the database. */
export class BoardData implements Board {
  readonly database: Database
  readonly tasks: Tasks
  readonly log: EventLog
  readonly runs: Runs
  readonly #boards: Boards
  readonly #dispatch: Dispatch
  readonly work: Work
  readonly plans: Plans
  readonly #autoQueue: AutoQueue
  readonly #autoPlans: AutoPlans

  /** @param now epoch seconds */
  constructor (database: Database, now: () => number, deps: WorkDeps & PlanDeps & AutoPlanDeps) {
    this.database = database
    this.log = new EventLog(database, now)
    this.#boards = new Boards(database, now)
    this.tasks = new Tasks({
      database, events: this.log, now, orchestration: () => this.orchestration(),
      inTriage: (row, actor) => this.#autoPlans.entered(row, actor)
    })
    this.runs = new Runs(database, this.tasks, now)
    this.#dispatch = new Dispatch({ ...deps, board: this })
    this.work = new Work(this, this.#dispatch, deps)
    this.#autoQueue = new AutoQueue(database, now)
    this.plans = new Plans(this, this.#autoQueue, deps)
    this.#autoPlans = new AutoPlans(this, this.plans, this.#autoQueue, deps)
  }

  /** Hands tasks to agents from now on, and those in triage to the model that plans. */
  async start (): Promise<void> {
    await this.#dispatch.start()
    this.#autoPlans.start()
  }

  look (): void { this.#dispatch.look() }

  async close (): Promise<void> {
    await this.#autoPlans.stop()
    await Promise.all([this.#dispatch.stop(), this.plans.close()])
    this.database.close()
  }

  boards (): readonly BoardView[] { return this.#boards.list() }
  slugOf (board: string | undefined): string { return this.#boards.slugOf(board) }
  switchBoard (slug: string): void { this.#boards.switch(slug) }

  deleteBoard (slug: string): void {
    this.#boards.remove(slug)
    // its readers and its agents have nothing more to do there
    this.log.tell()
  }

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

  assignees (board: string): Readonly<Record<string, number>> {
    const rows = this.database.all<{ assignee: string, count: number }>(`SELECT assignee, count(*) AS count FROM tasks
      WHERE board = ? AND assignee IS NOT NULL AND status <> 'archived' GROUP BY assignee`, board)
    return Object.fromEntries(rows.map(({ assignee, count }) => [assignee, count]))
  }

  stats (board: string): { readonly total: number, readonly by_status: Readonly<Record<string, number>> } {
    const rows = this.database.all<{ status: TaskStatus, count: number }>(
      'SELECT status, count(*) AS count FROM tasks WHERE board = ? GROUP BY status', board)
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

  setOrchestration (patch: OrchestrationPatch): Orchestration {
    const given = Object.entries(patch).filter(([, value]) => value !== undefined)
    const next: Orchestration = { ...this.orchestration(), ...Object.fromEntries(given) }
    this.database.run('INSERT OR REPLACE INTO settings (key, value) VALUES (\'orchestration\', ?)', JSON.stringify(next))
    if (!next.auto_decompose) this.#autoQueue.clear()
    this.#autoPlans.look()
    this.look()
    return next
  }

  events (board: string, since: number, limit: number): { readonly events: readonly BoardEvent[], readonly isGap: boolean } {
    return this.log.after(board, since, limit)
  }

  get cursor (): number { return this.log.cursor }
  readonly follow = (listener: () => void): () => void => this.log.follow(listener)
}
