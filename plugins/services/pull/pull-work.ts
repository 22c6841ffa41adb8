import type { Job } from 'svc-gateway/plugin'
import type { PullRecord } from './record.js'
import type { PullRequest, PullSnapshot } from './ref.js'

export interface WorkEvents {
  /** Something that a snapshot shows has changed. */
  readonly changed: () => void
  /** The record has changed and is worth writing down. */
  readonly keep: () => void
}

/** The work of one pull, wherever its model comes from. */
export interface PullWork {
  /** What its row keeps for the next run of the gateway. */
  readonly record: PullRecord
  readonly bytesDone: number
  /** 0 while unknown. */
  readonly bytesTotal: number
  /** Bytes that it will still write. */
  readonly bytesToGo: number
  /** Folder whose disk it fills. */
  readonly folder: string
  /** Files that it writes and no other pull may, absolute. */
  readonly places: readonly string[]
  /** Too late to cancel. */
  readonly isPlacing: boolean
  snapshot (job: Job, errorCode: string | null): PullSnapshot
  /** Once. Resolves when the model can be used. Rejects with a `SvcError`, or with the signal's reason; what is there stays. */
  run (signal: AbortSignal, events: WorkEvents): Promise<void>
  /** Removes what is there of it. */
  discard (): Promise<void>
}

/** Where models are pulled from. */
export interface PullOrigin<Record extends PullRecord> {
  /** Decides everything about a pull. Throws whatever makes it impossible. */
  plan (request: PullRequest, signal: AbortSignal): Promise<Record>
  /** The work that is left, of a plan or of a row; looks up what is there already. */
  work (modelId: string, record: Record): Promise<PullWork>
}
