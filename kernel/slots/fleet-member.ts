import type { EngineProvider, SlotStatus } from '../contract/index.js'
import type { EngineInspection } from '../runtime/container-runtime.js'
import type { PlacedSlot } from './gpu-groups.js'
import type { SlotOwner } from './slot-owner.js'
import type { StatusFeed } from './status-feed.js'

/** What the fleet knows of one slot besides its owner. */
export interface Member {
  readonly name: string
  readonly owner: SlotOwner
  readonly feed: StatusFeed<SlotStatus>
  /** Settles when an earlier slot of this name has left: its engine holds the port until then. */
  readonly free: Promise<void>
  /** What its engine was started with; stays when the plugin or the configuration changes. */
  launched: { readonly provider: EngineProvider, readonly modelId: string | null, readonly placed: PlacedSlot } | null
  unwatchExit: () => void
  found: EngineInspection | null
  drift: boolean
}
