import type { Task } from './task.js'

/** What the agent of a run is given. */
export interface AgentTask {
  /** Id of the run, which is also its claim. */
  readonly run: string
  readonly agent: string
  readonly board: string
  readonly task: Task
}

export interface AgentWorld {
  /** Aborts when the claim is over: end the agent, then settle. */
  readonly signal: AbortSignal
  /** A line of the log of the run. Never throws. */
  readonly log: (line: string) => void
  /** Keeps what `AgentRunner.end` needs to find the agent again in another run of the gateway, at most 4 KiB. */
  readonly keep: (handle: string) => void
}

export interface AgentOutcome {
  readonly ok: boolean
  /** The summary of a task that is done, why one is not. */
  readonly message: string
}

/** Brings agents to life for tasks. */
export interface AgentRunner {
  /** Agents that can be given tasks now. Quick. */
  readonly agents: () => ReadonlyArray<{ readonly id: string, readonly label: string }>
  /** Tells that there may be other agents now. Returns what unregisters the listener. */
  readonly follow?: (listener: () => void) => () => void
  /** Resolves when the agent has ended. Rejects when it could not be started. */
  readonly run: (task: AgentTask, world: AgentWorld) => Promise<AgentOutcome>
  /** Resolves when nothing is left of a run of an earlier gateway, by what `keep` was given. */
  readonly end: (handle: string) => Promise<void>
}
