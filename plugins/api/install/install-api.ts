import type { ActivityLog, ConfigService, HardwareService, ModelRegistry, ProviderCatalog, SlotService } from 'svc-gateway/plugin'
import type { AgentLifecycle, AgentOffers, Agents } from '../../services/agents/ref.js'
import type { ModelLibrary } from '../../services/library/ref.js'
import type { CapabilityOverlay } from '../capabilities/ref.js'
import type { Companions } from '../services/ref.js'
import type { Installer } from './installer.js'
import type { ModelFinder } from './model-finder.js'

export interface InstallApi {
  readonly activity: ActivityLog
  readonly agents: Agents
  readonly agentLifecycle: AgentLifecycle
  readonly agentOffers: AgentOffers
  readonly companions: Companions
  readonly config: ConfigService
  readonly finder: ModelFinder
  readonly hardware: HardwareService
  readonly installer: Installer
  readonly library: ModelLibrary
  readonly models: ModelRegistry
  readonly overlay: CapabilityOverlay
  readonly providers: ProviderCatalog
  readonly slots: SlotService
}
