import type { ActivityFilter, ActivityPage, ActivityQuery, ActivityRow } from '../contract/index.js'

/** Where activity rows live; kernel/state/activity-table.ts is the durable one. Synchronous; every call may throw. */
export interface ActivityStore {
  readonly epoch: string
  /** Highest id that was ever given; 0 when none was. */
  lastId (): number
  /** All of them or none. Returns the id of the last one. */
  insert (rows: ReadonlyArray<Omit<ActivityRow, 'id'>>): number
  /** Newest first. */
  list (query: ActivityQuery): readonly ActivityRow[]
  /** As the contract's `ActivityLog.page`. */
  page (query: ActivityQuery): ActivityPage
  /** The next rows after `since` that fit, oldest first. */
  after (since: number, filter: ActivityFilter, limit: number): readonly ActivityRow[]
  /** Deletes rows older than `before` (ISO 8601 UTC) and the oldest beyond `maxRows`. Returns how many went. */
  prune (before: string, maxRows: number): number
}
