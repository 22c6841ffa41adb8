import type { SlotMetrics } from './slot-status.js'

export interface ThroughputQuery {
  /** Seconds to look back, at most 3600. */
  readonly windowS: number
  /** Into how many pieces the window is cut; a piece is a whole number of seconds. */
  readonly buckets: number
}

/** Generated tokens over time. */
export interface ThroughputHistory {
  readonly window_s: number
  /** Length of one piece. */
  readonly bucket_s: number
  /** Oldest first; pieces in which nothing was generated are left out. `ts` is the end of the piece, in epoch seconds. */
  readonly samples: ReadonlyArray<{ readonly ts: number, readonly total_tps: number, readonly serving_slots: number }>
  /** Tokens per second, one number for each sample; only who generated any. */
  readonly per_slot: Readonly<Record<string, readonly number[]>>
  readonly per_upstream: Readonly<Record<string, readonly number[]>>
}

/** What was generated, by slots and by upstreams. */
export interface ThroughputService {
  history (query: ThroughputQuery): ThroughputHistory
  /** Counters of the upstreams that are configured, by name. */
  upstreams (): Readonly<Record<string, SlotMetrics>>
}
