import { createServiceRef } from 'svc-gateway/plugin'
import type { AgentRunner } from './agent-runner.js'
import type { BoardPlans } from './plan/planning.js'
import type { BoardEventKind, RunView, Task, TaskStatus } from './task.js'

export type { AgentOutcome, AgentRunner, AgentTask, AgentWorld } from './agent-runner.js'
export { boardError } from './errors.js'
export { runProgram } from './program-run.js'
export type { AgentProgram, ProgramEnd } from './program-run.js'
export type { BoardPlans, PlanCall } from './plan/planning.js'
export { boardEventKinds, runStates, taskStatuses } from './task.js'
export type { BoardEventKind, RunState, RunView, Task, TaskStatus } from './task.js'

export interface BoardView {
  readonly slug: string
  readonly name: string
  readonly icon: string | null
  readonly desc: string
  /** Tasks that are not archived. */
  readonly count: number
  /** Calls that name no board mean this one. */
  readonly current: boolean
}

export interface BoardWords {
  /** Default: the slug. */
  readonly name?: string | undefined
  readonly icon?: string | null | undefined
  readonly desc?: string | undefined
}

export interface BoardEvent {
  readonly id: number
  readonly kind: BoardEventKind
  readonly task_id: string
  readonly board: string
  readonly at: number
  readonly json: unknown
}

/** What may be said of a task; what is left out stays as it is. */
export interface TaskPatch {
  readonly title?: string | undefined
  readonly status?: TaskStatus | undefined
  readonly assignee?: string | null | undefined
  readonly profile?: string | null | undefined
  readonly tenant?: string | null | undefined
  readonly priority?: number | undefined
  readonly workspace?: string | null | undefined
  readonly body?: string | undefined
  readonly block_reason?: string | null | undefined
  readonly schedule?: number | null | undefined
  readonly summary?: string | null | undefined
}

export interface NewTask extends TaskPatch {
  readonly title: string
  /** Tasks that have to be done first. */
  readonly parents?: readonly string[] | undefined
}

export interface Orchestration {
  /** Who gets ready tasks without an assignee; null leaves them. */
  readonly default_assignee: string | null
  /** A task in `todo` becomes ready when the last task that it depends on is done. */
  readonly auto_promote_children: boolean
  /** Tasks that enter `triage` are decomposed, each once. */
  readonly auto_decompose: boolean
  /** Model that plans tasks; null means `svc/agent`. */
  readonly orchestrator_profile: string | null
}

export type OrchestrationPatch = { readonly [K in keyof Orchestration]?: Orchestration[K] | undefined }

export interface DispatchSettings {
  /** Seconds between two looks for ready tasks; changes of the board are looked at at once. */
  readonly tick_interval: number
  /** A task that failed so often in a row is blocked. */
  readonly failure_limit: number
  /** Seconds that an agent has for a task. */
  readonly claim_ttl: number
  /** Agents that work at a time. */
  readonly max_in_flight: number
}

export interface WorkerView {
  /** Id of the task. */
  readonly id: string
  readonly run: string
  readonly profile: string
  /** When it was claimed, in epoch seconds. */
  readonly claimed: number
}

/** The work of agents. */
export interface BoardWork {
  readonly settings: DispatchSettings
  /** Agents that can be given tasks now. */
  agents (): ReadonlyArray<{ readonly id: string, readonly label: string }>
  /** What it is called on the board; null: as its runner calls it. Throws `board.profile_not_found`. */
  label (agent: string, label: string | null): void
  /** Starts agents for ready tasks. Returns how many. */
  dispatch (max: number): number
  /** Ends the agent of a task, waits for that, and makes the task ready. Throws `board.invalid_status` where none works at it. */
  reclaim (board: string, task: string): Promise<Task>
  run (board: string, id: string): RunView & { readonly task_id: string }
  /** What the last agent of a task wrote, the last 256 KiB. */
  log (board: string, task: string): string
  active (): readonly WorkerView[]
}

/** Tells that events came, after they were written. Returns what unregisters the listener. */
export type Follow = (listener: () => void) => () => void

/** What is done with a board: everything is written when the call returns. Unknown things throw `board.*`. */
export interface Board {
  boards (): readonly BoardView[]
  createBoard (slug: string, words: BoardWords): BoardView
  changeBoard (slug: string, words: BoardWords): BoardView
  /** With all its tasks. The default board stays. */
  deleteBoard (slug: string): void
  switchBoard (slug: string): void
  /** The slug of the board that is meant; undefined means the current one. */
  slugOf (board: string | undefined): string

  lanes (board: string, includeArchived: boolean): Readonly<Partial<Record<TaskStatus, readonly Task[]>>>
  task (board: string, id: string): Task
  create (board: string, task: NewTask, actor: string): Task
  /** @param revision what the caller has seen; null where it does not matter */
  change (board: string, id: string, patch: TaskPatch, actor: string, revision: number | null): Task
  /** All or none of them. Returns how many. */
  changeAll (board: string, ids: readonly string[], patch: TaskPatch, actor: string): number
  remove (board: string, id: string, actor: string, revision: number | null): void
  comment (board: string, id: string, author: string, body: string): Task
  link (board: string, parent: string, child: string): void
  unlink (board: string, parent: string, child: string): void
  /** How many tasks that are not archived each assignee has. */
  assignees (board: string): Readonly<Record<string, number>>
  stats (board: string): { readonly total: number, readonly by_status: Readonly<Record<string, number>> }

  readonly work: BoardWork
  readonly plans: BoardPlans
  /** How tasks are handed to agents. */
  orchestration (): Orchestration
  setOrchestration (patch: OrchestrationPatch): Orchestration

  /** Those after `since`, oldest first; `isGap` says that some of them are not kept any more. */
  events (board: string, since: number, limit: number): { readonly events: readonly BoardEvent[], readonly isGap: boolean }
  /** The id of the last event of all boards. */
  readonly cursor: number
  readonly follow: Follow
}

export interface BoardService {
  /** Opens the database with the first call. */
  open (): Promise<Board>
  /** Agents that a plugin brings; the last runner that has an agent gets its tasks. Returns what takes them away. */
  useRunner (runner: AgentRunner): () => void
}

export const boardRef = createServiceRef<BoardService>('board.service')
