import type {
  Device, ErrorCode, GpuInfo, Model, NamedProfile, NamedSlotConfig, ProviderCatalog, SlotRule
} from '../../contract/index.js'
import type { RuntimeChoice } from '../plan/slot-runtime.js'

/** What the rules look at besides the slots themselves. */
export interface SlotSetContext {
  readonly profiles: ReadonlyMap<string, NamedProfile>
  readonly providers: Pick<ProviderCatalog, 'get' | 'list' | 'ownerOf'>
  /** A model of the registry. */
  readonly model: (id: string) => Model | undefined
  /** The device of a slot, also of one whose file names none. */
  readonly device: (slot: NamedSlotConfig) => Device
  readonly gpus: readonly GpuInfo[]
  readonly runtime: RuntimeChoice
  /** Maximum number of slots; 0 is unlimited. */
  readonly maxSlots: number
  /** Where the gateway listens. */
  readonly gatewayPort: number
}

export type Facts = { readonly param?: string, readonly details?: Readonly<Record<string, unknown>> }
/** What decides whether slots can run beside each other. */
export type RivalContext = Pick<SlotSetContext, 'device' | 'gpus' | 'runtime'> & { readonly providers: Pick<ProviderCatalog, 'get'> }

export type Report = (slot: NamedSlotConfig, rule: SlotRule, code: ErrorCode, message: string, facts?: Facts) => void
