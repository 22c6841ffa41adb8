import type {
  ConfigDraft, ConfigFileDefinition, ConfigService, Device, EventBus, GpuInfo, LaunchTrouble, ModelFiles, ModelRegistry,
  NamedSlotConfig, ProviderCatalog
} from '../../contract/index.js'
import type { RuntimeChoice } from '../plan/slot-runtime.js'

export interface SlotWriterDeps {
  readonly config: ConfigService
  readonly models: ModelRegistry
  readonly modelFiles: ModelFiles
  readonly providers: ProviderCatalog
  readonly events: EventBus
  readonly gpus: () => readonly GpuInfo[]
  readonly runtime: RuntimeChoice
  readonly defaultDevice: (slot: NamedSlotConfig) => Device
  /** Why the image of a slot of a draft cannot be had; null when it can, or where none is needed. */
  readonly imageProblem: (name: string, draft: Pick<ConfigDraft, 'slots' | 'profiles'>) => string | null
  /** Files of plugins, which may have what a slot's engine serves. */
  readonly owned: () => readonly ConfigFileDefinition[]
  /** What would keep a slot of a draft from coming up. */
  readonly troubles: (name: string, draft: Pick<ConfigDraft, 'slots' | 'profiles'>) => Promise<readonly LaunchTrouble[]>
}
