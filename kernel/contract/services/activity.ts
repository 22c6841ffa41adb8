import type { Severity } from './events.js'

export const activityKinds = ['action', 'event'] as const
export const activityOutcomes = ['ok', 'error', 'pending'] as const
export const activitySeverities = ['info', 'warn', 'error', 'ok'] as const

/** A durable audit row to be. `before` and `after` are redacted on the way in. */
export interface NewActivity {
  readonly kind?: typeof activityKinds[number]
  readonly category: string
  /** Dotted verb: `slot.create`. */
  readonly action: string
  readonly target: string
  readonly actor: string
  readonly severity?: Severity | 'ok'
  readonly outcome?: typeof activityOutcomes[number] | null
  readonly message?: string
  readonly before?: unknown
  readonly after?: unknown
  readonly error?: string | null
  readonly duration_ms?: number | null
  readonly request_id?: string | null
}

export interface ActivityRow extends Required<Omit<NewActivity, 'before' | 'after'>> {
  readonly id: number
  /** ISO 8601 UTC. */
  readonly ts: string
  readonly before: unknown
  readonly after: unknown
}

/** What rows must have; what is left out does not matter. */
export interface ActivityFilter {
  readonly category?: string | undefined
  /** Glob over the action, with `*` and `?`. */
  readonly action?: string | undefined
  readonly target?: string | undefined
  readonly severity?: NonNullable<NewActivity['severity']> | undefined
  readonly outcome?: typeof activityOutcomes[number] | undefined
  readonly actor?: string | undefined
  readonly kind?: typeof activityKinds[number] | undefined
  /** Text in action, target, actor, message or error; ASCII letters match in either case. */
  readonly search?: string | undefined
}

export interface ActivityQuery extends ActivityFilter {
  /** Only rows with a higher id. */
  readonly since?: number | undefined
  /** Only rows with a lower id: the next page of a list. */
  readonly before?: number | undefined
  /** At most so many rows, the newest; default 200, at most 5000. */
  readonly limit?: number | undefined
}

/** What only the work itself can tell about an audited action. */
export type ActivityNote = Partial<Pick<NewActivity, 'before' | 'after' | 'message' | 'target'>>

/** Rows are lost: since when (ISO 8601 UTC), how many since then, and why the last one was. */
export interface ActivityFailure {
  readonly since: string
  readonly lost: number
  readonly reason: string
}

/** Some rows as text, for answers that hand on many of them. */
export interface ActivityPage {
  /** A JSON list of rows, newest first. */
  readonly json: string
  /** How many rows are in it. */
  readonly count: number
  /** What to give as `before` for what comes behind; null when there is nothing. */
  readonly next_before: number | null
}

export interface ActivityLog {
  /** Name of the table's ids: they count on in every run of the gateway, and begin anew only with another epoch. */
  readonly epoch: string
  /** Highest id that was given; 0 when none was. */
  readonly lastId: number
  /** Null while rows are written; otherwise until one is written again. */
  readonly failure: ActivityFailure | null
  /** Never throws: a failed write is logged, and told by `failure`. */
  record (row: NewActivity): void
  /** Newest first. */
  list (query?: ActivityQuery): readonly ActivityRow[]
  /**
   * As `list`, at a bounded cost: where a filter lets little through, it ends after the newest 10,000 rows that it looked at,
   * with fewer rows than asked for or none, and `next_before` says where to go on.
   */
  page (query: ActivityQuery): ActivityPage
  /**
   * Rows as they are written, oldest first. Begins after `since`, else with the latest `limit` rows (default none).
   * A slow reader loses nothing: rows are read from the table at its pace. Ends with the signal.
   */
  follow (query: ActivityQuery, signal: AbortSignal): AsyncIterable<ActivityRow>
  /**
   * Runs `work` and records its truthful outcome and duration; re-throws. `work` may note what it learns on the
   * way: the row has what was noted last. A row whose outcome is `pending` is written before the work as well, so that a process
   * that is killed in it leaves a trace.
   */
  audited<T> (row: NewActivity, work: (note: (learned: ActivityNote) => void) => Promise<T>): Promise<T>
}
