import { createServiceRef, type ApprovalError, type ApprovalState } from 'svc-gateway/plugin'

/** For whom an entry is shown: an agent, which reads what other agents asked for, sees no unwritten argument. */
export type ApprovalReader = 'operator' | 'agent'

/** A call of a gated tool as it is shown. Times in epoch seconds. Secrets are taken out of arguments and results. */
export interface Approval {
  /** 32 hex digits. */
  readonly id: string
  readonly server: string
  readonly tool: string
  readonly args: Readonly<Record<string, unknown>>
  /** What it is about; null when the tool does not say. */
  readonly primary: string | null
  /** The agent that asked, by the name that it gave. */
  readonly client_id: string
  readonly state: ApprovalState
  /** How often it was asked for while it was pending. */
  readonly hit_count: number
  readonly enqueued_at: number
  /** When it expires; null once it is decided. */
  readonly expires_at: number | null
  readonly decided_at: number | null
  /** Null until it is decided, and when it expired. */
  readonly decided_by: string | null
  /** What the operator said to it. */
  readonly reason: string | null
  readonly finished_at: number | null
  readonly result: unknown
  readonly error: ApprovalError | null
  /** Arguments or result are shortened: the entry by itself has them whole. */
  readonly is_cut: boolean
}

export interface ApprovalPage {
  /** Newest first; pending ones alone oldest first. */
  readonly approvals: readonly Approval[]
  /** What to give as `before` for older ones; null when there are none. */
  readonly next_before: number | null
}

export interface ApprovalListQuery {
  /** Undefined: all of them. */
  readonly state?: ApprovalState | undefined
  readonly before?: number | undefined
  readonly limit: number
}

export const approvalEventKinds = [
  'snapshot', 'enqueued', 'repeated', 'approved', 'denied', 'expired', 'executed', 'failed'
] as const

export interface ApprovalEvent {
  /** What happened; `snapshot` for each entry that is pending when one begins to follow, or that may have been missed. */
  readonly kind: typeof approvalEventKinds[number]
  /** As it is when the event is sent. */
  readonly entry: Approval
}

/** Calls of gated tools that wait for an operator. Unknown ids throw `approvals.not_found`. */
export interface ApprovalInbox {
  list (query: ApprovalListQuery, reader: ApprovalReader): ApprovalPage
  get (id: string, reader: ApprovalReader): Approval
  /**
   * Runs the call, once, even if decided twice at a moment, and whether its caller waits or not. Resolves when it has
   * ended, also when it failed. Throws `approvals.already_resolved`.
   */
  approve (id: string, by: string): Promise<Approval>
  /** Throws `approvals.already_resolved`. */
  deny (id: string, by: string, reason?: string): Approval
  follow (reader: ApprovalReader, signal: AbortSignal): AsyncIterable<ApprovalEvent>
}

export const approvalsRef = createServiceRef<ApprovalInbox>('approvals.inbox')
