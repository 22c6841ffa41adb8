import { core, type ConfigCheck, type GatewayInfo, type Installation, type ListenerService } from './contract/index.js'
import type { Services } from './host/mount/services.js'
import type { PluginHost } from './host/plugin-host.js'
import { apiDocument } from './http/openapi/openapi.js'
import type { Inference } from './inference.js'
import type { KernelServices } from './kernel-services.js'
import type { Tools } from './tools/tool-catalogue.js'
import { version } from './version.js'

export interface CoreParts {
  readonly kernel: KernelServices
  readonly inference: Inference
  readonly host: PluginHost
  readonly check: ConfigCheck
  readonly tools: Tools
  readonly installation: Installation
  readonly listeners: ListenerService
  /** As it is when it is looked at. */
  readonly info: () => GatewayInfo
}

const infoKeys = ['name', 'version', 'instance', 'startedAt', 'uptimeMs', 'runtime', 'runtimes', 'baseUrl'] as const

/** What the kernel offers to plugins, by the references of `core`. */
export function provideCore (
  services: Services, { kernel, inference, host, check, tools, installation, listeners, info }: CoreParts
): void {
  services.add(core.info, Object.defineProperties({}, Object.fromEntries(
    infoKeys.map(key => [key, { enumerable: true, get: () => info()[key] }])
  )))
  services.add(core.config, kernel.config)
  services.add(core.configCheck, check)
  services.add(core.clock, kernel.clock)
  services.add(core.log, kernel.log)
  services.add(core.events, kernel.events)
  services.add(core.activity, kernel.activity)
  services.add(core.approvalRows, kernel.approvals)
  services.add(core.gpu, inference.gpu)
  services.add(core.gate, inference.gpu)
  services.add(core.hardware, kernel.hardware)
  services.add(core.installation, installation)
  services.add(core.jobs, kernel.jobs)
  services.add(core.listeners, listeners)
  services.add(core.models, kernel.models)
  services.add(core.modelFiles, kernel.modelFiles)
  services.add(core.openapi, apiDocument(() => host.routes, version, () => host.providers.list()))
  services.add(core.daemons, inference.daemons)
  services.add(core.providers, host.providers)
  services.add(core.agents, host.agents)
  services.add(core.services, host.companions)
  services.add(core.slots, inference.slots)
  services.add(core.dispatch, inference.dispatcher)
  services.add(core.upstreams, inference.upstreamService)
  services.add(core.requests, inference.requests)
  services.add(core.plugins, host)
  services.add(core.programs, kernel.programs)
  services.add(core.tasks, inference.tasks)
  services.add(core.throughput, inference.throughput)
  services.add(core.tools, tools)
}
