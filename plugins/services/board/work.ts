import type { BoardCore } from './board-core.js'
import type { Dispatch, DispatchDeps } from './dispatch.js'
import { boardError } from './errors.js'
import type { BoardWork, DispatchSettings, RunView, Task, WorkerView } from './ref.js'

export type WorkDeps = Omit<DispatchDeps, 'board'>

/** What clients see of dispatch, and ask of it. */
export class Work implements BoardWork {
  readonly #board: BoardCore
  readonly #dispatch: Dispatch
  readonly #deps: WorkDeps

  constructor (board: BoardCore, dispatch: Dispatch, deps: WorkDeps) {
    this.#board = board
    this.#dispatch = dispatch
    this.#deps = deps
  }

  get settings (): DispatchSettings { return this.#deps.settings }

  agents (): ReadonlyArray<{ readonly id: string, readonly label: string }> {
    const labels = this.#labels()
    const byId = new Map(this.#deps.runners().flatMap(runner => runner.agents()).map(agent => [agent.id, agent]))
    return [...byId.values()].map(({ id, label }) => ({ id, label: (Object.hasOwn(labels, id) ? labels[id] : null) ?? label }))
  }

  label (agent: string, label: string | null): void {
    const known = this.agents().map(({ id }) => id)
    if (!known.includes(agent)) {
      throw boardError('board.profile_not_found', `no agent '${agent}' can be given tasks; there are ${known.join(', ') || 'none'}`, { details: { agent, known } })
    }
    const labels = { ...this.#labels(), [agent]: label }
    this.#board.database.run('INSERT OR REPLACE INTO settings (key, value) VALUES (\'labels\', ?)', JSON.stringify(labels))
  }

  #labels (): Readonly<Record<string, string | null>> {
    const row = this.#board.database.get<{ value: string }>('SELECT value FROM settings WHERE key = \'labels\'')
    return row === undefined ? {} : JSON.parse(row.value) as Record<string, string | null>
  }

  dispatch (max: number): number { return this.#dispatch.dispatch(max) }

  async reclaim (board: string, task: string): Promise<Task> {
    this.#board.tasks.row(board, task)
    if (!await this.#dispatch.reclaim(task)) {
      throw boardError('board.invalid_status', `no agent is working on task '${task}'`, { details: { task } })
    }
    return this.#board.task(board, task)
  }

  run (board: string, id: string): RunView & { readonly task_id: string } { return this.#board.runs.get(board, id) }

  log (board: string, task: string): string { return this.#board.runs.log(this.#board.tasks.row(board, task).id) }

  active (): readonly WorkerView[] {
    const runs = this.#board.runs.running()
    return runs.map(({ id, task, agent, started }) => ({ id: task, run: id, profile: agent, claimed: started }))
  }
}
