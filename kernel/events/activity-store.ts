import type { ActivityFilter, ActivityPage, ActivityQuery, ActivityRow } from '../contract/index.js'

/** What comes next in the table. */
export interface ActivityPiece {
  /** Oldest first. */
  readonly rows: readonly ActivityRow[]
  /** All rows up to this id were looked at. */
  readonly upTo: number
}

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
  /** The id behind which the newest `limit` rows that fit begin, of those that a page looks at. */
  behind (filter: ActivityFilter, limit: number): number
  /** The next rows after `since` that fit; where a filter lets little through, it ends as early as a page does. */
  after (since: number, filter: ActivityFilter, limit: number): ActivityPiece
  /** Deletes rows older than `before` (ISO 8601 UTC) and the oldest beyond `maxRows`. Returns how many went. */
  prune (before: string, maxRows: number): number
}
