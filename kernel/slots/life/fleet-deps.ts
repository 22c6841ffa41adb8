import type {
  Clock, ConfigService, EngineAddress, EngineClient, EngineProvider, EventBus, Logger, ModelRegistry
} from '../../contract/index.js'
import type { ContainerRuntime } from '../../contract/provider/engine-runtime.js'
import type { HealthProbe } from './watch/health.js'
import type { SlotPortsDeps } from './ports.js'
import type { Engine } from '../schedule/scheduled-slot.js'
import type { SlotPlans } from '../plan/slot-plans.js'
import type { SlotStateFiles } from './kept/slot-state-file.js'

/** What the owners of slots work with. */
export interface FleetDeps {
  readonly config: Pick<ConfigService, 'snapshot' | 'withoutSecrets'>
  readonly plans: SlotPlans
  readonly models: Pick<ModelRegistry, 'isUnread'>
  readonly runtime: ContainerRuntime
  readonly clock: Clock
  readonly events: EventBus
  readonly log: Logger
  readonly instance: string
  readonly stateFiles: SlotStateFiles
  readonly probe: HealthProbe
  readonly client: (address: EngineAddress, provider: EngineProvider) => EngineClient
  /**
   * Throws why a slot may not have an engine at the moment. Asked right before one is started, and of those that were
   * found at start, which are removed.
   */
  readonly assertMayRun: (name: string) => void
  /** How ports are given to slots whose files name none. */
  readonly ports: Pick<SlotPortsDeps, 'customary' | 'reserved' | 'claim'>
  /** Called when a slot came up, went down, appeared or vanished: routing looks again. */
  readonly changed: (name: string) => void
  /** An engine that was held for an unreadable file is gone. */
  readonly heldGone: () => void
  /** An engine is gone: connections to it are of no use. */
  readonly engineGone: (engine: Engine) => void
  /** Called before a stop; the function it gives waits until the device has the engine's memory back. */
  readonly watchRelease: (slot: string) => Promise<() => Promise<void>>
}
