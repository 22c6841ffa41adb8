import { randomBytes } from 'node:crypto'
import type { Cell, Database } from './database.js'
import { boardError } from './errors.js'
import type { EventLog } from './event-log.js'
import type { BoardEventKind, NewTask, Orchestration, Task, TaskPatch, TaskStatus } from './ref.js'
import { TaskRows, type TaskRow } from './task-rows.js'

const MOST_TASKS = 5_000
const MOST_COMMENTS = 1_000
const MOST_LINKS = 200
const columns = ['title', 'status', 'assignee', 'profile', 'tenant', 'priority', 'workspace', 'body', 'block_reason', 'schedule', 'summary'] as const

export interface TaskDeps {
  readonly database: Database
  readonly events: EventLog
  /** Epoch seconds. */
  readonly now: () => number
  readonly orchestration: () => Orchestration
  /** Told of each task that a client puts into `triage`, within the transaction. */
  readonly inTriage: (row: TaskRow, actor: string) => void
}

/** The tasks of all boards, with what they depend on. Each call is one transaction. */
export class Tasks {
  readonly #deps: TaskDeps
  readonly rows: TaskRows

  constructor (deps: TaskDeps) {
    this.#deps = deps
    this.rows = new TaskRows(deps.database, deps.events)
  }

  /** Throws `board.task_not_found`, also for one of another board. */
  row (board: string, id: string): TaskRow {
    const row = this.rows.find(id)
    if (row?.board === board) return row
    throw boardError('board.task_not_found', `board '${board}' has no task '${id}'`, { details: { board, task: id } })
  }

  get (board: string, id: string): Task {
    return this.rows.whole(this.row(board, id))
  }

  create (board: string, { parents = [], status = 'triage', ...task }: NewTask, actor: string): Task {
    const { database, events, now } = this.#deps
    return database.transaction(() => {
      const { count } = database.get<{ count: number }>('SELECT count(*) AS count FROM tasks WHERE board = ?', board)!
      if (count >= MOST_TASKS) throw boardError('board.full', `board '${board}' has ${MOST_TASKS} tasks, which is the maximum; delete some`)
      const id = this.#newId()
      const at = now()
      database.run('INSERT INTO tasks (id, board, title, status, created_by, created, updated_at, revision) VALUES (?, ?, ?, \'triage\', ?, ?, ?, 0)',
        id, board, task.title, actor, at, at)
      for (const parent of parents) this.#addLink(board, parent, id)
      this.#write(this.row(board, id), { ...task, status })
      const row = this.row(board, id)
      events.add(board, id, 'created', { actor, title: task.title, status: row.status })
      if (row.status === 'triage') this.#deps.inTriage(row, actor)
      return this.get(board, id)
    })
  }

  change (board: string, id: string, patch: TaskPatch, actor: string, revision: number | null): Task {
    const { database } = this.#deps
    return database.transaction(() => {
      const row = this.row(board, id)
      mustBe(row, revision)
      this.#write(row, patch)
      this.note(row, 'updated', { actor, ...told(patch) })
      if (patch.status === 'triage' && row.status !== 'triage') this.#deps.inTriage(row, actor)
      return this.get(board, id)
    })
  }

  changeAll (board: string, ids: readonly string[], patch: TaskPatch, actor: string): number {
    const { database } = this.#deps
    const each = new Set(ids)
    database.transaction(() => { for (const id of each) this.change(board, id, patch, actor, null) })
    return each.size
  }

  remove (board: string, id: string, actor: string, revision: number | null): void {
    const { database, events } = this.#deps
    database.transaction(() => {
      const row = this.row(board, id)
      mustBe(row, revision)
      const children = this.#childrenOf(id)
      database.run('DELETE FROM tasks WHERE id = ?', id)
      events.add(board, id, 'deleted', { actor, title: row.title })
      for (const child of children) this.#settle(child)
    })
  }

  comment (board: string, id: string, author: string, body: string): Task {
    const { database } = this.#deps
    return database.transaction(() => {
      const row = this.row(board, id)
      const { count } = database.get<{ count: number }>('SELECT count(*) AS count FROM comments WHERE task = ?', id)!
      if (count >= MOST_COMMENTS) throw boardError('board.full', `task '${id}' has ${MOST_COMMENTS} comments, which is the maximum`)
      this.say(row, author, body)
      return this.get(board, id)
    })
  }

  /** However many comments there are: for what the gateway itself says once in the life of a task. Part of a transaction. */
  say (row: Pick<TaskRow, 'board' | 'id'>, author: string, body: string): void {
    const { database, now } = this.#deps
    database.run('INSERT INTO comments (task, author, at, body) VALUES (?, ?, ?, ?)', row.id, author, now(), body)
    this.#touch(row.id)
    this.note(row, 'commented', { author })
  }

  link (board: string, parent: string, child: string): void {
    this.#deps.database.transaction(() => {
      this.#addLink(board, parent, child)
      this.#touch(child)
      this.note(this.row(board, child), 'link_added', { parent_id: parent, child_id: child })
      this.#settle(child)
    })
  }

  unlink (board: string, parent: string, child: string): void {
    const { database } = this.#deps
    database.transaction(() => {
      const row = this.row(board, child)
      if (database.run('DELETE FROM links WHERE parent = ? AND child = ?', parent, child) === 0) {
        throw boardError('board.link_invalid', `'${child}' does not depend on '${parent}'`)
      }
      this.#touch(child)
      this.note(row, 'link_removed', { parent_id: parent, child_id: child })
      this.#settle(child)
    })
  }

  /** What the gateway itself has tied together or set back: whether it waits. Part of a transaction. */
  settle (id: string): void { this.#settle(id) }

  /** Whether all that it depends on is done. */
  mayStart (id: string): boolean {
    return this.#openParents(id).length === 0
  }

  /** Tells an event of a task. Part of the transaction that it stands in. */
  note ({ board, id }: Pick<TaskRow, 'board' | 'id'>, kind: BoardEventKind, json: Readonly<Record<string, unknown>>): void {
    this.#deps.events.add(board, id, kind, json)
  }

  /** Sets columns past the rules for clients: what the gateway itself does to a task. Part of a transaction. */
  set (id: string, values: Readonly<Partial<Record<keyof TaskRow, Cell>>>): void {
    for (const [column, value] of Object.entries(values)) this.#deps.database.run(`UPDATE tasks SET ${column} = ? WHERE id = ?`, value, id)
    this.#touch(id)
    if (values.status !== undefined) for (const child of this.#childrenOf(id)) this.#settle(child)
  }

  #write (row: TaskRow, patch: TaskPatch): void {
    const { status = row.status, schedule = row.schedule } = patch
    this.#mustTake(row, status, schedule)
    const values: Partial<Record<typeof columns[number], Cell>> = {}
    for (const column of columns) if (patch[column] !== undefined) values[column] = patch[column]
    if (status !== row.status) {
      if (row.status === 'blocked') values.block_reason ??= null
      if (row.status === 'scheduled' && status !== 'scheduled') values.schedule ??= null
    }
    // a task that is moved by hand begins anew: its failures no longer count
    this.set(row.id, status === row.status ? values : { ...values, failures: 0 })
  }

  #mustTake (row: TaskRow, status: TaskStatus, schedule: number | null): void {
    const refuse = (why: string): never => {
      throw boardError('board.invalid_status', `task '${row.id}' cannot be ${status}: ${why}`, { details: { task: row.id, status: row.status } })
    }
    // also when it is there already: without its time it would never leave
    if (status === 'scheduled' && schedule === null) refuse('`schedule` must say when it becomes ready, in epoch seconds')
    if (status === row.status) return
    if (status === 'running') refuse('it starts when it is dispatched; move it to ready')
    const open = status === 'ready' ? this.#openParents(row.id) : []
    if (open.length > 0) refuse(`it depends on ${open.slice(0, 5).join(', ')}, not done yet`)
  }

  #addLink (board: string, parent: string, child: string): void {
    const { database } = this.#deps
    const invalid = (why: string): never => { throw boardError('board.link_invalid', why, { details: { parent_id: parent, child_id: child } }) }
    this.row(board, parent)
    this.row(board, child)
    if (parent === child) invalid(`task '${child}' cannot depend on itself`)
    const above = database.get(`WITH RECURSIVE below (id) AS (SELECT ? UNION SELECT child FROM links JOIN below ON parent = below.id)
      SELECT id FROM below WHERE id = ?`, child, parent)
    if (above !== undefined) invalid(`'${parent}' already depends on '${child}', directly or indirectly`)
    const { count } = database.get<{ count: number }>('SELECT count(*) AS count FROM links WHERE parent = ? OR child = ?', parent, child)!
    if (count >= MOST_LINKS) throw boardError('board.full', `a task has at most ${MOST_LINKS} links`)
    database.run('INSERT OR IGNORE INTO links (parent, child) VALUES (?, ?)', parent, child)
  }

  /** A task that is ready waits again when something that it depends on is not done, and the other way round. */
  #settle (id: string): void {
    const row = this.rows.find(id)!
    const isFree = this.#openParents(id).length === 0
    const next = row.status === 'ready' && !isFree ? 'todo' : row.status === 'todo' && isFree && this.#hasParents(id) ? 'ready' : null
    if (next === null || (next === 'ready' && !this.#deps.orchestration().auto_promote_children)) return
    this.set(id, { status: next })
    this.note(row, 'updated', { actor: 'system', status: next })
  }

  #openParents (id: string): readonly string[] {
    return this.#deps.database.all<{ parent: string }>(
      'SELECT parent FROM links JOIN tasks ON tasks.id = parent WHERE child = ? AND status NOT IN (\'done\', \'archived\')', id).map(({ parent }) => parent)
  }

  #hasParents (id: string): boolean {
    return this.#deps.database.get('SELECT 1 AS one FROM links WHERE child = ? LIMIT 1', id) !== undefined
  }

  #childrenOf (id: string): readonly string[] {
    return this.#deps.database.all<{ child: string }>('SELECT child FROM links WHERE parent = ?', id).map(({ child }) => child)
  }

  #touch (id: string): void {
    const { database, now } = this.#deps
    database.run('UPDATE tasks SET revision = revision + 1, updated_at = ? WHERE id = ?', now(), id)
  }

  #newId (): string {
    for (;;) {
      const id = `t_${randomBytes(4).toString('hex')}`
      if (this.rows.find(id) === undefined) return id
    }
  }
}

export function mustBe ({ id, revision }: TaskRow, seen: number | null): void {
  if (seen === null || seen === revision) return
  throw boardError('board.stale_write', `task '${id}' is at revision ${revision}, not ${seen}; read it again`, { details: { task: id, revision } })
}

/** What of a change stands in its event: long texts by their names alone. */
function told ({ body, ...patch }: TaskPatch): Readonly<Record<string, unknown>> {
  return { ...patch, ...(body === undefined ? {} : { body: true }) }
}
