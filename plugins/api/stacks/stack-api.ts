import type {
  ActivityLog, Clock, ConfigService, EventBus, GatewayInfo, ModelRegistry, ProviderCatalog, SlotService
} from 'svc-gateway/plugin'
import type { ModelLibrary } from '../../services/library/ref.js'
import type { CapabilityOverlay } from '../capabilities/ref.js'

/** What stacks are made of and put into force with. */
export interface StackServices {
  readonly activity: ActivityLog
  readonly clock: Clock
  readonly config: ConfigService
  readonly events: EventBus
  readonly info: GatewayInfo
  readonly library: Pick<ModelLibrary, 'curated'>
  readonly models: ModelRegistry
  readonly overlay: CapabilityOverlay
  readonly providers: ProviderCatalog
  readonly slots: SlotService
}
