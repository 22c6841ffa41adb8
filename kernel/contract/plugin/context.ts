import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import type { AgentDescriptor } from '../agent/agent.js'
import type { ServiceDescriptor } from '../agent/companion.js'
import type { ConfigFile, ConfigFileDefinition } from './config-file.js'
import type { Logger } from '../logger.js'
import type { PluginTable } from './plugin-store.js'
import type { RuntimeDefinition } from '../provider/engine-runtime.js'
import type { EngineProvider } from '../provider/provider.js'
import type { AnyRoute } from '../http/route.js'
import type { Requires, ServiceRef, ServicesOf } from './service-ref.js'
import type { SettingDefinition } from '../schemas/setting.js'
import type { ToolDefinition } from '../tool.js'
import type { UpstreamTemplateInput } from '../provider/upstream-template.js'

export const pluginKinds = ['provider', 'routes', 'mcp', 'runtime', 'service'] as const
export type PluginKind = typeof pluginKinds[number]

/**
 * What every plugin may do in `register`. All of it stages and touches nothing; after `register` has
 * returned, every method throws `plugin.late_call`.
 */
export interface BaseContext<R extends Requires, C extends z.ZodType> {
  readonly name: string
  /** `[plugins.config.<name>]`, validated. */
  readonly config: z.output<C>
  readonly services: ServicesOf<R>
  readonly log: Logger
  /** Aborts when this plugin goes: for timers, sockets and loops that it made itself. */
  readonly signal: AbortSignal
  /** A folder of this plugin alone, there from the first look at this property on. It survives restarts and updates. */
  readonly stateDir: string
  /** A small table of this plugin alone that survives restarts and updates. */
  readonly table: PluginTable
  /** Offers a service to other plugins. The ref must be listed in `provides`. */
  provide<T> (ref: ServiceRef<T>, implementation: T): void
  addSetting (setting: SettingDefinition): void
  /** A file below the configuration root that is this plugin's own. */
  addConfigFile<S extends z.ZodType> (definition: ConfigFileDefinition<S>): ConfigFile<z.output<S>>
  /** Shown by `GET /api/plugins`; must be quick and must not throw. */
  addHealth (probe: () => Readonly<Record<string, unknown>>): void
  /**
   * Work with I/O, after every plugin is mounted. Deadline 30 s. The signal aborts at the deadline and when
   * the gateway stops: pass it on to whatever the work waits for.
   */
  onStart (work: (signal: AbortSignal) => void | Promise<void>): void
  /** Called in reverse order of start, also after a failed start. Deadline 10 s. */
  onStop (work: () => void | Promise<void>): void
}

export interface RouteMethods {
  addRoute (route: AnyRoute): void
  /**
   * The escape hatch for what routes as data cannot say (raw multipart): runs inside the plugin's
   * own Fastify scope. It is run more than once: on a scratch instance first, and again when plugins change.
   */
  configureScope (configure: (app: FastifyInstance) => void | Promise<void>): void
}

export interface ProviderMethods {
  addProvider (provider: EngineProvider): void
  /** A maker of models elsewhere, for rows of providers.toml to name. */
  addUpstreamTemplate (template: UpstreamTemplateInput): void
}

export interface RuntimeMethods {
  /** A plugin that brings one is replaced by a restart of the gateway only: engines run on it. */
  addRuntime (runtime: RuntimeDefinition): void
}

export interface ToolMethods {
  addTool (tool: ToolDefinition): void
}

export interface ServiceMethods {
  /** A program beside the gateway, made by `defineService`. */
  addService (service: ServiceDescriptor): void
  /** A program that people run on a model, made by `defineAgent`: how it is brought, started, wired and known. */
  addAgent (agent: AgentDescriptor): void
}

export interface KindMethods {
  provider: ProviderMethods
  routes: RouteMethods
  mcp: ToolMethods & RouteMethods
  runtime: RuntimeMethods
  service: ServiceMethods
}

/** The methods of all the kinds together. */
type MethodsOf<K extends PluginKind> =
  (K extends PluginKind ? (methods: KindMethods[K]) => void : never) extends (all: infer M) => void ? M : never

export type PluginContext<K extends PluginKind, R extends Requires, C extends z.ZodType> = BaseContext<R, C> & MethodsOf<K>
