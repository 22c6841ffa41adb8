import type {
  ActivityLog, ConfigService, DispatchService, EventBus, HardwareService, ModelFiles, ModelRegistry, ProviderCatalog, SlotService
} from 'svc-gateway/plugin'
import type { HubClient } from '../../services/hub/ref.js'
import type { ModelLibrary } from '../../services/library/ref.js'
import type { ModelPulls } from '../../services/pull/ref.js'

/** What the routes of this group work with. */
export interface ModelApi {
  readonly activity: ActivityLog
  readonly config: ConfigService
  readonly dispatch: DispatchService
  readonly events: EventBus
  readonly files: ModelFiles
  readonly hardware: HardwareService
  readonly hub: HubClient
  readonly library: ModelLibrary
  readonly models: ModelRegistry
  readonly providers: ProviderCatalog
  readonly pulls: ModelPulls
  readonly slots: SlotService
}
