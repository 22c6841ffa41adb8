import type {
  ActivityLog, Clock, ConfigCheck, ConfigService, DispatchService, GatewayInfo, HardwareService, ModelRegistry, SlotService
} from 'svc-gateway/plugin'
import type { SlotRecords } from './record/slot-records.js'

/** What the routes of this group work with. */
export interface SlotApi {
  readonly activity: ActivityLog
  readonly clock: Clock
  readonly config: ConfigService
  readonly configCheck: ConfigCheck
  readonly dispatch: DispatchService
  readonly hardware: HardwareService
  readonly info: GatewayInfo
  readonly models: ModelRegistry
  readonly slots: SlotService
  readonly records: SlotRecords
}
