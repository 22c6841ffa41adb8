import type { Clock, ConfigService } from '../../contract/index.js'
import type { Connections } from './connections.js'
import type { SlotManager } from '../../slots/slot-manager.js'
import type { UpstreamMeters } from '../requests/upstream-meters.js'

/** What every call of the dispatcher shares. */
export interface CallContext {
  readonly clock: Clock
  readonly config: ConfigService
  readonly connections: Connections
  readonly slots: SlotManager
  readonly meters: UpstreamMeters
}
