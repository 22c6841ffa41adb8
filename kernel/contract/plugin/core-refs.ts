import type { AgentCatalog } from '../agent/agent.js'
import type { ServiceCatalog } from '../agent/companion.js'
import type { Logger } from '../logger.js'
import type { Device, SlotType } from '../schemas/enums.js'
import type { NamedProfile } from '../schemas/profile.js'
import { createServiceRef } from './service-ref.js'
import type { ActivityLog } from '../services/activity.js'
import type { ApprovalRows } from '../services/approvals.js'
import type { Clock } from '../services/clock.js'
import type { ConfigCheck } from '../services/config/config-check.js'
import type { ConfigService } from '../services/config/config.js'
import type { DispatchService } from '../services/dispatch.js'
import type { EngineTasks } from '../services/slots/engine-tasks.js'
import type { EventBus } from '../services/events.js'
import type { GpuArbiter, SlotGate } from '../services/slots/gpu.js'
import type { HardwareService } from '../services/hardware.js'
import type { Installation } from '../services/installation.js'
import type { JobStore } from '../services/jobs.js'
import type { ListenerService } from '../services/listeners.js'
import type { ModelFiles, ModelRegistry } from '../services/models.js'
import type { PluginService } from '../services/plugins.js'
import type { Programs } from '../services/programs.js'
import type { DaemonService } from '../services/daemons.js'
import type { RequestService } from '../services/requests.js'
import type { RuntimeInfo, RuntimeView } from '../provider/runtime-info.js'
import type { SlotService } from '../services/slots/slots.js'
import type { ThroughputService } from '../services/slots/throughput.js'
import type { ToolCatalogue } from '../services/tools.js'
import type { UpstreamService } from '../services/upstreams.js'
import type { EngineProvider } from '../provider/provider.js'

export interface GatewayInfo {
  readonly name: string
  readonly version: string
  /** Random id of this home; labels the containers that belong to it. */
  readonly instance: string
  readonly startedAt: string
  /** How long it has been up, whatever was done to the wall clock since. */
  readonly uptimeMs: number
  /** The driver that slots get which ask for none. */
  readonly runtime: RuntimeInfo
  /** Every driver that slots may ask for by name, the default first. */
  readonly runtimes: readonly RuntimeView[]
  /** `http://host:port` once the gateway listens, else null. */
  readonly baseUrl: string | null
}

/** The OpenAPI 3.1 document of every mounted route. */
export interface ApiDocument {
  document (): Record<string, unknown>
  /** The same as JSON, which is made once for the routes that there are. */
  json (): string
}

/** What a slot, or what could be one, says of its engine. */
export interface ProviderWish {
  readonly provider: string | null
  readonly type: SlotType
  readonly device?: Device | undefined
  readonly profile: string | null
}

/** The providers of plugins that are up. */
export interface ProviderCatalog {
  list (): readonly EngineProvider[]
  /** By its own name. */
  get (name: string): EngineProvider | undefined
  /** Other names of providers, each with the provider's own. */
  readonly aliases: ReadonlyMap<string, string>
  /** What the deprecated key `backend` may say besides the kernel's own words (`backendDevices`). */
  readonly deviceWords: ReadonlyMap<string, Device>
  /** The provider of slots of a type that name none; without a device those that name none either. */
  defaultFor (type: SlotType, device?: Device): EngineProvider | undefined
  /**
   * Which provider a slot gets: the one that it names, by whatever name; else the one whose profile it has; else the default
   * of its type and device; else `none`.
   */
  nameFor (slot: ProviderWish): string
  /**
   * Whose profile it is: the engine's that it is named after or that brings it; else the engine's whose image it has, by the
   * image's short name; else that of the profile it was copied from. Undefined when none of these tells.
   */
  ownerOf (profile: Pick<NamedProfile, 'name' | 'image' | 'cloned_from'>): EngineProvider | undefined
}

/** The kernel's services. A plugin names the ones it uses in `requires`; a name that is none throws where it is written. */
export const core = known('core', Object.freeze({
  info: createServiceRef<GatewayInfo>('core.info'),
  config: createServiceRef<ConfigService>('core.config'),
  configCheck: createServiceRef<ConfigCheck>('core.config-check'),
  clock: createServiceRef<Clock>('core.clock'),
  log: createServiceRef<Logger>('core.log'),
  agents: createServiceRef<AgentCatalog>('core.agents'),
  events: createServiceRef<EventBus>('core.events'),
  activity: createServiceRef<ActivityLog>('core.activity'),
  approvalRows: createServiceRef<ApprovalRows>('core.approval-rows'),
  gpu: createServiceRef<GpuArbiter>('core.gpu'),
  gate: createServiceRef<SlotGate>('core.gate'),
  hardware: createServiceRef<HardwareService>('core.hardware'),
  installation: createServiceRef<Installation>('core.installation'),
  jobs: createServiceRef<JobStore>('core.jobs'),
  listeners: createServiceRef<ListenerService>('core.listeners'),
  models: createServiceRef<ModelRegistry>('core.models'),
  modelFiles: createServiceRef<ModelFiles>('core.model-files'),
  openapi: createServiceRef<ApiDocument>('core.openapi'),
  daemons: createServiceRef<DaemonService>('core.daemons'),
  providers: createServiceRef<ProviderCatalog>('core.providers'),
  services: createServiceRef<ServiceCatalog>('core.services'),
  slots: createServiceRef<SlotService>('core.slots'),
  dispatch: createServiceRef<DispatchService>('core.dispatch'),
  upstreams: createServiceRef<UpstreamService>('core.upstreams'),
  requests: createServiceRef<RequestService>('core.requests'),
  plugins: createServiceRef<PluginService>('core.plugins'),
  programs: createServiceRef<Programs>('core.programs'),
  tasks: createServiceRef<EngineTasks>('core.tasks'),
  throughput: createServiceRef<ThroughputService>('core.throughput'),
  tools: createServiceRef<ToolCatalogue>('core.tools')
}))

/** Otherwise a misspelt service is a plain `undefined`, and nothing tells where it comes from. */
function known<T extends object> (name: string, services: T): T {
  return new Proxy(services, {
    get (target, key) {
      if (typeof key === 'symbol' || key in target || key === 'then' || key === 'toJSON') return Reflect.get(target, key) as unknown
      const word = key.toLowerCase()
      const near = Object.keys(target).find(other => other.toLowerCase().startsWith(word) || word.startsWith(other.toLowerCase()))
      const hint = near === undefined ? `there are ${Object.keys(target).join(', ')}` : `did you mean ${name}.${near}?`
      throw new TypeError(`${name} has no service '${key}'; ${hint}`)
    }
  })
}
