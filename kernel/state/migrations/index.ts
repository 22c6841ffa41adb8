import { activityAndJobs } from './0001-activity-and-jobs.js'
import { activityChanges } from './0002-activity-changes.js'
import { pluginState } from './0003-plugin-state.js'
import { approvals } from './0004-approvals.js'
import { unwrittenArguments } from './0005-unwritten-arguments.js'
import { textsOfTheTrail } from './0006-texts-of-the-trail.js'
import type { DatabaseMigration } from './migration.js'

export type { DatabaseMigration }

export const migrations: readonly DatabaseMigration[] = [
  activityAndJobs, activityChanges, pluginState, approvals, unwrittenArguments, textsOfTheTrail
]
