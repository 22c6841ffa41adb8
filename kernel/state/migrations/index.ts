import { activityAndJobs } from './0001-activity-and-jobs.js'
import { activityChanges } from './0002-activity-changes.js'
import { pluginState } from './0003-plugin-state.js'

/** One step of the database's form. Never changed once released: its checksum is kept in the file. */
export interface DatabaseMigration {
  /** Counts up from 1 without gaps. */
  readonly version: number
  readonly name: string
  readonly sql: string
}

export const migrations: readonly DatabaseMigration[] = [activityAndJobs, activityChanges, pluginState]
