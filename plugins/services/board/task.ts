/** The lanes, in their order. */
export const taskStatuses = ['triage', 'todo', 'scheduled', 'ready', 'running', 'blocked', 'review', 'done', 'archived'] as const
export type TaskStatus = typeof taskStatuses[number]

export const boardEventKinds = ['created', 'updated', 'deleted', 'commented', 'link_added', 'link_removed', 'specify', 'decompose'] as const
export type BoardEventKind = typeof boardEventKinds[number]

export const runStates = ['running', 'done', 'failed', 'timed_out', 'lost', 'stopped'] as const
export type RunState = typeof runStates[number]

/** An attempt of an agent. `dur` in seconds, null while it runs; `at` epoch seconds. */
export interface RunView {
  readonly id: string
  readonly state: RunState
  readonly profile: string
  readonly dur: number | null
  readonly at: number
  readonly msg: string | null
}

/** Times are epoch seconds. */
export interface Task {
  readonly id: string
  readonly title: string
  readonly status: TaskStatus
  readonly assignee: string | null
  readonly profile: string | null
  readonly tenant: string | null
  readonly priority: number
  readonly workspace: string | null
  readonly created_by: string
  readonly created: number
  readonly updated_at: number
  readonly body: string
  readonly block_reason: string | null
  /** When a scheduled task becomes ready. */
  readonly schedule: number | null
  readonly summary: string | null
  /** Counts the changes; the ETag of a task. */
  readonly revision: number
  readonly deps: { readonly parents: readonly string[], readonly children: readonly string[] }
  readonly comments: ReadonlyArray<{ readonly author: string, readonly at: number, readonly body: string }>
  /** The last 50, oldest first. */
  readonly events: ReadonlyArray<{ readonly kind: BoardEventKind, readonly at: number, readonly json: unknown }>
  readonly runs: readonly RunView[]
  readonly comment_count: number
  /** "done/total" of what it depends on; null where it depends on nothing. */
  readonly dep_count: string | null
}
