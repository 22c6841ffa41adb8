import type { BoardCore } from '../board-core.js'
import { boardError } from '../errors.js'
import type { Task, TaskStatus } from '../ref.js'
import type { TaskRow } from '../task-rows.js'
import type { AutoQueue } from './auto-queue.js'

interface Words {
  readonly title: string
  readonly body: string
  readonly status: TaskStatus
}

interface Row {
  readonly kind: 'specify' | 'decompose'
  readonly before: string
  readonly after: string
  readonly parts: string
}

/** The last plan of each task, with what takes it back. */
export class KeptPlans {
  readonly #board: BoardCore
  readonly #queue: AutoQueue

  constructor (board: BoardCore, queue: AutoQueue) {
    this.#board = board
    this.#queue = queue
  }

  /** Part of the transaction that has written the plan. @param before the task as it was */
  keep (kind: Row['kind'], before: TaskRow, parts: readonly string[]): void {
    const { database, tasks } = this.#board
    const revisions = Object.fromEntries(parts.map(id => [id, tasks.rows.find(id)!.revision]))
    database.run('INSERT OR REPLACE INTO plans (task, kind, before, after, parts) VALUES (?, ?, ?, ?, ?)', before.id, kind,
      JSON.stringify(wordsOf(before)), JSON.stringify(wordsOf(tasks.rows.find(before.id)!)), JSON.stringify(revisions))
    this.#queue.planned(before.id)
  }

  /** What was worked at since stays, and all of the plan with it. */
  undo (row: TaskRow, actor: string): Task {
    const { database, tasks } = this.#board
    const { id, board } = row
    return database.transaction(() => {
      const plan = database.get<Row>('SELECT kind, before, after, parts FROM plans WHERE task = ?', id)
      if (plan === undefined) throw boardError('board.nothing_to_undo', `task '${id}' was neither specified nor decomposed`, { details: { task: id } })
      const stale = (changed: string): never => {
        throw boardError('board.stale_write', `task '${changed}' was changed since the plan was made; change or delete by hand what is not wanted`, { details: { task: changed } })
      }
      if (JSON.stringify(wordsOf(row)) !== plan.after) stale(id)
      const parts = Object.entries(JSON.parse(plan.parts) as Record<string, number>)
      const changed = parts.find(([part, revision]) => tasks.rows.find(part)?.revision !== revision)
      if (changed !== undefined) stale(changed[0])
      for (const [part] of parts.toReversed()) tasks.remove(board, part, actor, null)
      const { title, body, status } = JSON.parse(plan.before) as Words
      tasks.set(id, { title, body, status })
      tasks.settle(id)
      database.run('DELETE FROM plans WHERE task = ?', id)
      tasks.note(row, 'updated', { actor, undone: plan.kind })
      return tasks.get(board, id)
    })
  }
}

function wordsOf ({ title, body, status }: TaskRow): Words {
  return { title, body, status }
}
