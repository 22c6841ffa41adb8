import type { Database } from './database.js'
import type { EventLog } from './event-log.js'
import type { RunState, RunView, Task } from './ref.js'

/** What of a task is in other tables, or counted there. */
type Joined = 'deps' | 'comments' | 'events' | 'runs' | 'comment_count' | 'dep_count'

export interface TaskRow extends Omit<Task, Joined> {
  readonly board: string
  readonly failures: number
  /** How often it was split off from another task. */
  readonly depth: number
}

export interface RunRow {
  readonly id: string
  readonly task: string
  readonly agent: string
  readonly state: RunState
  readonly started: number
  readonly ended: number | null
  readonly message: string | null
  readonly handle: string | null
}

const SHOWN_EVENTS = 50
const SHOWN_RUNS = 50
const SHOWN_COMMENTS = 200
/** Of a body in a list of tasks, in characters. */
const LISTED_BODY = 1_000

type Links = ReadonlyArray<{ readonly parent: string, readonly child: string, readonly done: number }>

/** Tasks as they are shown. */
export class TaskRows {
  readonly #database: Database
  readonly #events: EventLog

  constructor (database: Database, events: EventLog) {
    this.#database = database
    this.#events = events
  }

  find (id: string): TaskRow | undefined {
    return this.#database.get<TaskRow>('SELECT * FROM tasks WHERE id = ?', id)
  }

  whole (row: TaskRow): Task {
    const { id } = row
    const links = this.#database.all<Links[number]>(`SELECT parent, child, status IN ('done', 'archived') AS done FROM links
      JOIN tasks ON tasks.id = parent WHERE parent = ? OR child = ?`, id, id)
    const comments = this.#database.all<{ author: string, at: number, body: string }>(
      'SELECT author, at, body FROM comments WHERE task = ? ORDER BY id DESC LIMIT ?', id, SHOWN_COMMENTS).reverse()
    const { count } = this.#database.get<{ count: number }>('SELECT count(*) AS count FROM comments WHERE task = ?', id)!
    const runs = this.#database.all<RunRow>('SELECT * FROM runs WHERE task = ? ORDER BY rowid DESC LIMIT ?', id, SHOWN_RUNS).reverse()
    return { ...shown(row, links, count), comments, events: this.#events.ofTask(id, SHOWN_EVENTS), runs: runs.map(runView) }
  }

  /** The highest priority first, then the oldest; without comments, events and runs, and of the bodies the beginning. */
  list (board: string, includeArchived: boolean): readonly Task[] {
    const links = this.#database.all<Links[number]>(`SELECT parent, child, parents.status IN ('done', 'archived') AS done FROM links
      JOIN tasks AS parents ON parents.id = parent WHERE parents.board = ?`, board)
    const ofTask = new Map<string, Array<Links[number]>>()
    for (const link of links) {
      for (const id of [link.parent, link.child]) ofTask.set(id, [...ofTask.get(id) ?? [], link])
    }
    const rows = this.#database.all<TaskRow & { comment_count: number }>(`SELECT tasks.*, count(comments.id) AS comment_count
      FROM tasks LEFT JOIN comments ON comments.task = tasks.id WHERE board = ? AND (? OR status <> 'archived')
      GROUP BY tasks.id ORDER BY priority DESC, created, tasks.rowid`, board, includeArchived ? 1 : 0)
    return rows.map(row => ({
      ...shown(row, ofTask.get(row.id) ?? [], row.comment_count),
      body: row.body.slice(0, LISTED_BODY),
      comments: [],
      events: [],
      runs: []
    }))
  }
}

type Shown = Omit<Task, 'comments' | 'events' | 'runs'>

function shown (whole: TaskRow, links: Links, comments: number): Shown {
  const { board: _board, failures: _failures, depth: _depth, ...row } = whole
  const above = links.filter(({ child }) => child === row.id)
  const below = links.filter(({ parent }) => parent === row.id)
  return {
    ...row,
    deps: { parents: above.map(({ parent }) => parent), children: below.map(({ child }) => child) },
    comment_count: comments,
    dep_count: above.length === 0 ? null : `${above.filter(({ done }) => done === 1).length}/${above.length}`
  }
}

export function runView ({ id, state, agent, started, ended, message }: RunRow): RunView {
  return { id, state, profile: agent, dur: ended === null ? null : Math.max(0, ended - started), at: started, msg: message }
}
