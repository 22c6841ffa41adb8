import type { ActivityLog, Clock, ConfigService, GatewayInfo, SlotService } from 'svc-gateway/plugin'

/** What the routes of this group work with. */
export interface ProfileApi {
  readonly activity: ActivityLog
  readonly clock: Clock
  readonly config: ConfigService
  readonly info: GatewayInfo
  readonly slots: SlotService
}
