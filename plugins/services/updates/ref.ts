import { createServiceRef } from 'svc-gateway/plugin'
import type { Channel } from './channel-names.js'
import type { Manifest } from './manifest.js'
import type { Standing } from './standing.js'

export { channels, type Channel } from './channel-names.js'
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
}

export const updatesRef = createServiceRef<Updates>('updates.updates')
