import { randomUUID } from 'node:crypto'
import { messageOf, type ActivityLog, type Clock, type Logger, type Timer } from 'svc-gateway/plugin'
import type { BoardCore } from '../board-core.js'
import type { DispatchSettings } from '../ref.js'
import type { TaskRow } from '../task-rows.js'
import type { AutoQueue, WaitingTask } from './auto-queue.js'
import type { BoardPlans, PlanSettings } from './planning.js'

export interface AutoPlanDeps {
  readonly clock: Clock
  readonly log: Logger
  readonly activity: ActivityLog
  readonly plan: PlanSettings
  readonly settings: Pick<DispatchSettings, 'tick_interval'>
}

/**
 * `auto_decompose`: tasks that enter `triage` are decomposed one after the other. What is to be done is in the database, and
 * leaves it in the transaction that splits the task, so a gateway that comes after a crash neither forgets nor repeats it.
 */
export class AutoPlans {
  readonly #board: BoardCore
  readonly #plans: BoardPlans
  readonly #queue: AutoQueue
  readonly #deps: AutoPlanDeps
  #asking: AbortController | null = null
  #working: Promise<void> | null = null
  #timer: Timer | null = null
  #unfollow: (() => void) | null = null
  #isStopped = false
  #isAsked = false

  constructor (board: BoardCore, plans: BoardPlans, queue: AutoQueue, deps: AutoPlanDeps) {
    this.#board = board
    this.#plans = plans
    this.#queue = queue
    this.#deps = deps
  }

  /** Part of the transaction that puts a task into `triage`. */
  entered (row: TaskRow, actor: string): void {
    if (!this.#isOn || row.depth >= this.#deps.plan.most_depth) return
    this.#queue.add(row, actor)
  }

  start (): void {
    this.#unfollow = this.#board.follow(() => this.look())
    this.look()
    this.#later()
  }

  /** Also ends the question to a model when it was switched off. */
  look (): void {
    if (this.#isStopped) return
    if (!this.#isOn) this.#asking?.abort(new Error('auto_decompose was switched off'))
    else {
      this.#isAsked = true
      this.#working ??= this.#work()
    }
  }

  async stop (): Promise<void> {
    this.#isStopped = true
    this.#unfollow?.()
    this.#timer?.cancel()
    this.#asking?.abort(new Error('the gateway stops'))
    await this.#working
  }

  get #isOn (): boolean { return this.#board.orchestration().auto_decompose }

  #later (): void {
    this.#timer = this.#deps.clock.setTimer(this.#deps.settings.tick_interval * 1000, () => {
      this.look()
      this.#later()
    })
  }

  /** Never rejects. */
  async #work (): Promise<void> {
    const { log } = this.#deps
    // not within the change that is told
    await null
    while (this.#isAsked && !this.#isStopped) {
      this.#isAsked = false
      try {
        for (let waiting = this.#next(); waiting !== null; waiting = this.#next()) await this.#decompose(waiting)
      } catch (error) {
        log.error({ err: error }, 'tasks in triage cannot be decomposed')
      }
    }
    this.#working = null
  }

  #next (): WaitingTask | null {
    return this.#isStopped || !this.#isOn ? null : this.#queue.next(this.#deps.plan.auto_per_hour)
  }

  async #decompose (waiting: WaitingTask): Promise<void> {
    const { activity, log } = this.#deps
    const { task, board, actor } = waiting
    if (this.#queue.isTried(task)) return this.#giveUp(waiting, 'the gateway ended while a model was asked')
    const requestId = `board-${randomUUID()}`
    const asking = new AbortController()
    this.#queue.asking(waiting)
    this.#asking = asking
    try {
      await activity.audited({ category: 'board', action: 'board.task.decompose', target: task, actor: 'system', request_id: requestId }, () =>
        this.#plans.decompose(board, task, { actor: 'system', requestId, origin: originOf(actor), signal: asking.signal, revision: null }))
    } catch (error) {
      if (asking.signal.aborted) this.#queue.unasked(waiting)
      else {
        log.warn({ task, err: error }, 'a task in triage was not decomposed')
        if (this.#queue.isTried(task)) this.#giveUp(waiting, messageOf(error))
      }
    } finally {
      this.#asking = null
    }
  }

  /** Told on the task, where its people see it. */
  #giveUp ({ task }: WaitingTask, why: string): void {
    const { database, tasks } = this.#board
    database.transaction(() => {
      this.#queue.planned(task)
      const row = tasks.rows.find(task)
      if (row?.status === 'triage') tasks.say(row, 'system', `Not decomposed automatically: ${why}`.slice(0, 2000))
    })
  }
}

/** An agent pays for what it has put on the board. */
function originOf (actor: string): Readonly<Record<string, string>> {
  return actor.startsWith('mcp:') ? { 'x-svc-agent': actor.slice(4) } : {}
}
