import { join } from 'node:path'
import type { GatewayOptions } from './gateway-options.js'
import { builtinCandidates, descriptorCandidates, inlineCandidates, packageCandidates } from './host/packages/discover.js'
import { Generations } from './host/packages/generations.js'
import { watchLoop } from './host/watch/loop-watch.js'
import { PluginLogs } from './host/watch/plugin-logs.js'
import { PluginHost } from './host/plugin-host.js'
import type { Services } from './host/mount/services.js'
import { createApp } from './http/app.js'
import type { BodyReads } from './http/body/body-reads.js'
import type { HttpServer } from './http/server/http-server.js'
import { liveGuards } from './http/guard/live-guards.js'
import { allowedMethods, dialectAround } from './http/methods.js'
import type { OpenStreams } from './http/stream/sse-reply.js'
import type { Inference } from './inference.js'
import type { KernelServices } from './kernel-services.js'
import { withPlugin } from './logger.js'
import { pluginState } from './plugin-state.js'
import type { Tools } from './tools/tool-catalogue.js'
import { version } from './version.js'

export interface HostParts {
  readonly kernel: KernelServices
  readonly options: GatewayOptions
  readonly services: Services
  readonly server: HttpServer
  readonly streams: OpenStreams
  readonly bodies: BodyReads
  readonly tools: Tools
  /** Null until it is made, which takes the host. */
  readonly inference: () => Inference | null
  readonly isStopping: () => boolean
}

/** The host of this gateway's plugins: where they come from, and what follows when they change. */
export function createHost (
  { kernel, options, services, server, streams, bodies, tools, inference, isStopping }: HostParts
): PluginHost {
  const { config, clock, events, log } = kernel
  const guards = liveGuards(config, kernel.env, options.host)
  const { checkAnswers = false, pluginConfig = {} } = options
  const generations = new Generations(config.paths.plugins)
  const pluginHome = { folder: config.paths.plugins, generations, gateway: version }
  const logs = new PluginLogs(clock, text => config.withoutSecrets(text))
  const host: PluginHost = new PluginHost({
    clock,
    log,
    config,
    events,
    pluginConfig,
    services,
    generations,
    watchLoop: options.guardProcess === true ? told => watchLoop(log, told) : null,
    busyProviders: () => inference()?.fleet.busyProviders() ?? new Set(),
    stateOf: plugin => pluginState(kernel, plugin),
    logs,
    logOf: plugin => logs.tapped(plugin, withPlugin(log, plugin)),
    mount: {
      log,
      clock,
      streams,
      bodies,
      checkAnswers,
      limits: () => {
        const { api_body_limit_bytes: api, v1_body_limit_bytes: v1 } = config.snapshot.svc.server
        return { api, v1 }
      }
    },
    createApp: () => createApp({
      log,
      guards,
      bodies,
      methodsOf: path => allowedMethods(host.routes.map(({ route }) => route), path),
      dialectOf: path => dialectAround(host.routes.map(({ route }) => route), path),
      isStopping
    }),
    serve: app => server.serve((request, response) => app.routing(request, response)),
    candidates: async () => [
      ...builtinCandidates(options.builtins ?? []),
      ...inlineCandidates(options.plugins ?? []),
      ...await descriptorCandidates(join(config.paths.etc, 'engines')),
      ...await packageCandidates(pluginHome, config.snapshot.svc.plugins.allow)
    ],
    runtimesChanged: runtimes => kernel.runtime.use(runtimes),
    providersChanged: async (providers, files) => {
      const laid = config.use(providers, files)
      inference()?.providersChanged()
      await laid
    },
    toolsChanged: plugins => tools.use(plugins)
  })
  return host
}
