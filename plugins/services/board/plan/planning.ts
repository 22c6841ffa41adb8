import type { PluginCall } from 'svc-gateway/plugin'
import type { Task } from '../task.js'

/** Who asks for a plan. */
export interface PlanCall {
  readonly actor: string
  readonly requestId: string
  /** Headers of the client's request: by them it is known who pays for the model. */
  readonly origin: PluginCall['origin']
  /** Ends the question to the model; nothing is changed then. */
  readonly signal: AbortSignal
  /** What the caller has seen of the task; null where it does not matter. */
  readonly revision: number | null
}

/**
 * A model makes a task ready to be worked at. Each is one change, made when the whole answer is there and fits, and can be
 * undone. Throws `board.no_plan` for an answer that does not fit, `board.stale_write` for a task that was changed while the
 * model thought, and what a client would be told that asks the model itself.
 */
export interface BoardPlans {
  /** Says at length what is to be done: writes title and body anew. One in `triage` goes to `todo`. */
  specify (board: string, task: string, call: PlanCall): Promise<Task>
  /** Splits a task: it waits for its parts, which go to `ready` or wait for one another. Throws `board.too_deep`. */
  decompose (board: string, task: string, call: PlanCall): Promise<Task>
  /** Takes the last of them back. Throws `board.nothing_to_undo`, and `board.stale_write` for what was worked at since. */
  undo (board: string, task: string, actor: string): Task
}

export interface PlanSettings {
  /** Of an answer of the model. */
  readonly max_tokens: number
  /** What a model has for its answer. */
  readonly timeout_s: number
  /** Parts of a task. */
  readonly most_parts: number
  /** Levels of parts below a task. */
  readonly most_depth: number
  /** Questions of `auto_decompose` to a model. */
  readonly auto_per_hour: number
}
