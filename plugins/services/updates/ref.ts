import { createServiceRef } from 'svc-gateway/plugin'
import type { Channel } from './channel-names.js'
import type { UpdateJob } from './job-files.js'
import type { Manifest } from './manifest.js'
import type { Standing } from './standing.js'

export { channels, type Channel } from './channel-names.js'
export { updateKinds, updatePhases, updateStates, type UpdateJob } from './job-files.js'
export { installationKinds } from './standing.js'

export interface UpdateCheck {
  readonly current: string
  readonly latest: string
  readonly channel: Channel
  /** Whether an update would install it. */
  readonly available: boolean
  /** Why a release that is not the one that runs would not be installed; null where it would, and for the one that runs. */
  readonly blocked: string | null
  readonly manifestUrl: string
  readonly manifest: Manifest
}

export interface RolledBack {
  readonly job: string
  /** Versions. */
  readonly to: string
  readonly from: string
  /** Where the state database is of another version than the release that is gone back to has. */
  readonly schemaWarning: string | null
  readonly runningVersion: string
  readonly restartRequired: boolean
}

/** Releases of the gateway itself. */
export interface Updates {
  readonly channel: Channel
  /** Whether the channel is asked once a day. */
  readonly autoCheck: boolean
  /** The newer release that the last check found; null when it found none, and before one. */
  readonly available: string | null
  standing (): Promise<Standing>
  /** Asks the channel; with a version, for that one. Throws `system.update_error` and `system.update_manifest_invalid`. */
  check (target: string | null, signal: AbortSignal): Promise<UpdateCheck>
  /**
   * Begins an update; what becomes of it is told by `job`, over the restart too. `done` never rejects. Throws
   * `system.update_editable_install` and `system.update_busy`.
   */
  apply (version: string | null): Promise<{ readonly job: UpdateJob, readonly done: Promise<UpdateJob> }>
  /** Throws `system.update_job_not_found`. */
  job (id: string): UpdateJob
  /**
   * As `apply`, to the release before this one. Throws `system.update_rollback_unavailable` and
   * `system.update_trial_failed` as well.
   */
  rollBack (): Promise<RolledBack>
}

export const updatesRef = createServiceRef<Updates>('updates.updates')
