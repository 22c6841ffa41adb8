import { svcError, type Clock, type DispatchService } from 'svc-gateway/plugin'
import type { BoardCore } from '../board-core.js'
import { boardError } from '../errors.js'
import type { AgentRunner, Task, TaskStatus } from '../ref.js'
import type { TaskRow } from '../task-rows.js'
import { mustBe } from '../tasks.js'
import { askModel } from './ask-model.js'
import type { AutoQueue } from './auto-queue.js'
import { KeptPlans } from './kept-plans.js'
import type { BoardPlans, PlanCall, PlanSettings } from './planning.js'
import { decomposeQuestion, specifyQuestion, type Part, type Question } from './questions.js'

export interface PlanDeps {
  readonly clock: Clock
  readonly dispatch: DispatchService
  readonly plan: PlanSettings
  readonly runners: () => readonly AgentRunner[]
}

/** Where a task stands that can be planned: no agent is at it, and it is not over. */
const open: ReadonlySet<TaskStatus> = new Set(['triage', 'todo', 'scheduled', 'ready', 'blocked'])

/** `specify` and `decompose`: the model is asked first, and what it says is written in one transaction, or not at all. */
export class Plans implements BoardPlans {
  readonly #board: BoardCore
  readonly #deps: PlanDeps
  readonly #kept: KeptPlans
  /** By the id of their task. */
  readonly #running = new Map<string, Promise<unknown>>()
  readonly #halt = new AbortController()

  constructor (board: BoardCore, queue: AutoQueue, deps: PlanDeps) {
    this.#board = board
    this.#deps = deps
    this.#kept = new KeptPlans(board, queue)
  }

  specify (board: string, id: string, call: PlanCall): Promise<Task> {
    return this.#once(board, id, call, async task => {
      const { title, body } = await this.#ask(specifyQuestion(task), call)
      return this.#change(board, task, 'specify', call.actor, row => {
        this.#board.tasks.set(id, { title, body, status: row.status === 'triage' ? 'todo' : row.status })
        return []
      })
    })
  }

  decompose (board: string, id: string, call: PlanCall): Promise<Task> {
    const { plan: { most_depth: depth, most_parts: parts }, runners } = this.#deps
    if (this.#board.tasks.row(board, id).depth >= depth) {
      throw boardError('board.too_deep', `task '${id}' was split off ${depth} ${depth === 1 ? 'level' : 'levels'} deep, which is the maximum`, { details: { task: id } })
    }
    return this.#once(board, id, call, async task => {
      const agents = runners().flatMap(runner => runner.agents().map(agent => agent.id))
      const { tasks } = await this.#ask(decomposeQuestion(task, agents, parts), call)
      const split = (row: TaskRow): readonly string[] => this.#split(row, tasks, new Set(agents), call.actor)
      return this.#change(board, task, 'decompose', call.actor, split)
    })
  }

  undo (board: string, id: string, actor: string): Task {
    this.#mustBeFree(id)
    return this.#kept.undo(this.#board.tasks.row(board, id), actor)
  }

  /** Ends what models are asked. */
  async close (): Promise<void> {
    this.#halt.abort(svcError('gateway.stopping', 'the gateway, or the plugin of the board, is stopping'))
    await Promise.allSettled(this.#running.values())
  }

  async #once (board: string, id: string, { revision }: PlanCall, work: (task: Task) => Promise<Task>): Promise<Task> {
    const row = this.#board.tasks.row(board, id)
    mustBe(row, revision)
    this.#mustBeFree(id)
    if (!open.has(row.status)) {
      throw boardError('board.invalid_status', `task '${id}' cannot be planned while it is ${row.status}`, { details: { task: id, status: row.status } })
    }
    const running = work(this.#board.task(board, id))
    this.#running.set(id, running)
    try {
      return await running
    } finally {
      this.#running.delete(id)
    }
  }

  #mustBeFree (id: string): void {
    if (this.#running.has(id)) throw boardError('board.invalid_status', `a model is already planning task '${id}'`, { details: { task: id } })
  }

  #ask<T> (question: Question<T>, call: PlanCall): Promise<T> {
    const { clock, dispatch, plan } = this.#deps
    const model = (): string => this.#board.orchestration().orchestrator_profile ?? 'svc/agent'
    const signal = AbortSignal.any([call.signal, this.#halt.signal])
    const deps = { dispatch, clock, model, maxTokens: plan.max_tokens, timeoutMs: plan.timeout_s * 1000 }
    return askModel(deps, question, { ...call, signal })
  }

  /** @param write returns the ids of the parts that it made */
  #change (
    board: string, seen: Task, kind: 'specify' | 'decompose', actor: string, write: (row: TaskRow) => readonly string[]
  ): Task {
    const { database, tasks } = this.#board
    return database.transaction(() => {
      const row = tasks.row(board, seen.id)
      mustBe(row, seen.revision)
      const parts = write(row)
      tasks.note(row, kind, { actor, ...(parts.length === 0 ? {} : { parts }) })
      this.#kept.keep(kind, row, parts)
      return tasks.get(board, row.id)
    })
  }

  #split (row: TaskRow, parts: readonly Part[], agents: ReadonlySet<string>, actor: string): readonly string[] {
    const { board, id, status, assignee, profile, tenant, workspace, priority, depth } = row
    const { tasks } = this.#board
    const { auto_promote_children: promotes } = this.#board.orchestration()
    const ids: string[] = []
    for (const { title, body, assignee: named, after } of parts) {
      const who = named !== null && agents.has(named) ? { assignee: named } : { assignee, profile }
      const isFree = after.length === 0 && promotes
      const part = tasks.create(board, {
        title, body, tenant, workspace, priority, ...who, status: isFree ? 'ready' : 'todo', parents: after.map(place => ids[place]!)
      }, actor)
      tasks.set(part.id, { depth: depth + 1 })
      tasks.link(board, part.id, id)
      ids.push(part.id)
    }
    if (status === 'triage') tasks.set(id, { status: 'todo' })
    return ids
  }
}
