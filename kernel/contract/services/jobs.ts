/** `completed`, `failed` and `cancelled` are final. */
export const jobStates = ['queued', 'running', 'completed', 'failed', 'cancelled'] as const
export type JobState = typeof jobStates[number]

/** Work that goes on when its request is over; as a row it also outlives the gateway. Times ISO 8601 UTC. */
export interface Job {
  /** 16 hex digits. */
  readonly id: string
  /** What kind of work: `model-pull`. */
  readonly kind: string
  /** What it works on: an id of that kind's own. */
  readonly target: string
  readonly state: JobState
  /** 0 to 1; null if unknown. */
  readonly progress: number | null
  readonly message: string
  readonly error: string | null
  /** Whatever the work needs to go on after a restart. JSON; never holds a secret. */
  readonly data: Readonly<Record<string, unknown>>
  readonly created_at: string
  readonly updated_at: string
  /** Set by the store when the state becomes final. */
  readonly finished_at: string | null
}

export type NewJob = Pick<Job, 'kind' | 'target'> & Partial<Pick<Job, 'state' | 'message' | 'data'>>
export type JobPatch = Partial<Pick<Job, 'state' | 'progress' | 'message' | 'error' | 'data'>>

export interface JobQuery {
  readonly kind: string
  readonly target?: string
  /** Only jobs whose state is not final. */
  readonly unfinished?: boolean
  /** Default 200. */
  readonly limit?: number
}

/**
 * Rows of jobs in the state database. It keeps, it does not run: the owner of a kind decides what becomes of its
 * unfinished jobs after a restart. Every call is one short transaction and throws `state.database_failed` when the
 * database cannot take it (a full disk), with nothing changed.
 */
export interface JobStore {
  create (job: NewJob): Job
  /** Replaces the given fields, `data` as a whole. Throws `state.database_failed` for an id that is not there. */
  update (id: string, patch: JobPatch): Job
  get (id: string): Job | null
  /** Newest first. */
  list (query: JobQuery): readonly Job[]
  /** Removes finished jobs of a kind beyond the newest `keep`. How many went. */
  prune (kind: string, keep: number): number
}
