export const batchEndpoints = ['/v1/chat/completions', '/v1/completions', '/v1/embeddings', '/v1/responses'] as const
export type BatchEndpoint = typeof batchEndpoints[number]

export const batchStatuses = [
  'validating', 'failed', 'in_progress', 'finalizing', 'completed', 'expired', 'cancelling', 'cancelled'
] as const
export type BatchStatus = typeof batchStatuses[number]

/** What is wrong with a file of requests. */
export interface InputProblem {
  readonly code: string
  /** From 1; null for the file as a whole. */
  readonly line: number | null
  readonly message: string
  readonly param: string | null
}

/** A batch as it is kept. Times in epoch seconds. */
export interface BatchRecord {
  readonly id: string
  /** Counts the batches of this gateway. */
  readonly seq: number
  readonly endpoint: BatchEndpoint
  readonly inputFileId: string
  readonly completionWindow: string
  readonly metadata: Readonly<Record<string, string>> | null
  /** Of what it makes, in seconds. */
  readonly outputExpiresS: number
  /** Whose it is, if an agent made it: its rows are charged to it. */
  readonly agent: string | null
  readonly status: BatchStatus
  readonly problems: readonly InputProblem[]
  /** Every row has its result, and the counts are those of the end. */
  readonly isWritten: boolean
  readonly total: number
  readonly completed: number
  readonly failed: number
  readonly outputFileId: string | null
  readonly errorFileId: string | null
  readonly createdAt: number
  readonly expiresAt: number
  readonly inProgressAt: number | null
  readonly finalizingAt: number | null
  readonly completedAt: number | null
  readonly failedAt: number | null
  readonly expiredAt: number | null
  readonly cancellingAt: number | null
  readonly cancelledAt: number | null
}

export function isOver ({ status }: Pick<BatchRecord, 'status'>): boolean {
  return status === 'completed' || status === 'failed' || status === 'expired' || status === 'cancelled'
}
