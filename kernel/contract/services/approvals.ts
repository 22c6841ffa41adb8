export const approvalStates = ['pending', 'approved', 'executed', 'failed', 'denied', 'expired'] as const
export type ApprovalState = typeof approvalStates[number]

/** Why a call that was approved did not do what it was to do. */
export interface ApprovalError {
  readonly code: string
  readonly message: string
}

/**
 * A tool's call that waits, or waited, for an operator: what is to be done, as names and values, so that it outlives the
 * gateway. Times ISO 8601 UTC.
 */
export interface ApprovalRow {
  /** Counts up; a later entry has a higher one. */
  readonly seq: number
  /** 32 hex digits. */
  readonly id: string
  readonly server: string
  readonly tool: string
  /** As the caller gave them until the call is over; then what `finish` and `decide` left of them. */
  readonly args: Readonly<Record<string, unknown>>
  /** Names of arguments that are shown nowhere. */
  readonly secrets: readonly string[]
  /** Names of arguments that are shown to an operator, and only while it is pending. */
  readonly unwritten: readonly string[]
  /** What it is about, for people; null when the tool does not say. */
  readonly primary: string | null
  /** Who asked, as in audit rows: `mcp:<agent>`. */
  readonly actor: string
  readonly agent: string | null
  readonly private: boolean
  readonly state: ApprovalState
  /** How often it was asked for while it was pending. */
  readonly hit_count: number
  readonly enqueued_at: string
  /** When it was approved, denied, or expired; null until then. */
  readonly decided_at: string | null
  /** The actor that decided; null for one that expired. */
  readonly decided_by: string | null
  readonly reason: string | null
  readonly finished_at: string | null
  readonly result: unknown
  readonly error: ApprovalError | null
}

export interface NewApproval extends Pick<ApprovalRow, 'server' | 'tool' | 'args' | 'secrets' | 'unwritten' | 'primary' | 'actor' | 'agent' | 'private'> {
  /** Two calls of one tool with the same key are one entry. */
  readonly key: string
}

export interface ApprovalDecision {
  readonly state: 'approved' | 'denied' | 'expired'
  readonly by: string | null
  readonly reason?: string | null
  /** Takes the place of the arguments, once they are needed no more. */
  readonly args?: ApprovalRow['args']
}

export interface ApprovalOutcome extends Pick<ApprovalRow, 'args' | 'result' | 'error'> {
  readonly state: 'executed' | 'failed'
}

export interface ApprovalQuery {
  readonly state?: ApprovalState | undefined
  /** Only entries with a lower `seq`. */
  readonly before?: number | undefined
  readonly limit: number
}

/**
 * Rows of approvals in the state database. It keeps, it does not run. Every call is one short transaction and throws
 * `state.database_failed` when the database cannot take it, with nothing changed.
 */
export interface ApprovalRows {
  /** The pending entry of the same server, tool and key with one hit more, or a new one. */
  ask (row: NewApproval): { readonly row: ApprovalRow, readonly isNew: boolean }
  /** The entry that `ask` would join; null when it would make one. */
  waiting (server: string, tool: string, key: string): ApprovalRow | null
  get (id: string): ApprovalRow | null
  /** Newest first. */
  list (query: ApprovalQuery): readonly ApprovalRow[]
  /** How many are pending; of one actor, where it is named. */
  pending (actor?: string): number
  /**
   * From `pending` to what was decided; null when it was not pending any more. Of any number of decisions one gets the row.
   * What it returned is on the disk, and a power failure does not take it back.
   */
  decide (id: string, decision: ApprovalDecision): ApprovalRow | null
  /** From `approved` to the end; null when it was not approved. */
  finish (id: string, outcome: ApprovalOutcome): ApprovalRow | null
  /** Removes entries that are over, beyond the newest `keep`. How many went. */
  prune (keep: number): number
}
