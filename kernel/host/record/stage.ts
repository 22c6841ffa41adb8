import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import {
  isAgent, isProvider, isRoute, isRuntime, isService, isTool, svcError, type AgentDescriptor,
  type AnyPlugin, type AnyRoute, type ConfigFile,
  type ConfigFileDefinition, type EngineProvider, type Logger,
  type PluginTable, type RuntimeDefinition, type ServiceDescriptor, type ServiceRef, type SettingDefinition,
  type ToolDefinition, type UpstreamTemplate, type UpstreamTemplateInput, upstreamTemplateSchema
} from '../../contract/index.js'

/** What a plugin declared. Data until it is mounted and started. */
export interface Stage {
  readonly routes: AnyRoute[]
  readonly scopes: Array<(app: FastifyInstance) => void | Promise<void>>
  readonly providers: EngineProvider[]
  readonly templates: UpstreamTemplate[]
  readonly runtimes: RuntimeDefinition[]
  readonly tools: ToolDefinition[]
  readonly services: ServiceDescriptor[]
  readonly agents: AgentDescriptor[]
  readonly settings: SettingDefinition[]
  readonly files: ConfigFileDefinition[]
  readonly provided: Map<string, unknown>
  readonly healthProbes: Array<() => Readonly<Record<string, unknown>>>
  readonly startHooks: Array<(signal: AbortSignal) => void | Promise<void>>
  readonly stopHooks: Array<() => void | Promise<void>>
  /** Where each of the above was declared, as an error with its stack; empty for what ships with the gateway. */
  readonly calls: Map<unknown, Error>
}

/** What a plugin keeps from one run to the next. */
export interface PluginState {
  /** Makes the folder. */
  readonly folder: () => string
  readonly table: PluginTable
  /** A configuration file of its own, until the signal aborts. */
  readonly file: (definition: ConfigFileDefinition, signal: AbortSignal) => ConfigFile<unknown>
}

export interface StagedContext {
  readonly stage: Stage
  readonly context: Record<string, unknown>
  /** After this, every method of the context throws `plugin.late_call`. */
  readonly seal: () => void
}

/**
 * The `ctx` of one plugin: every method checks its argument and stages it, none has an effect.
 * @param traced remember where each contribution was declared
 */
export function createContext (
  plugin: AnyPlugin, config: unknown, services: object, log: Logger, state: PluginState,
  { signal, traced }: { readonly signal: AbortSignal, readonly traced: boolean }
): StagedContext {
  const stage: Stage = {
    routes: [],
    scopes: [],
    providers: [],
    templates: [],
    runtimes: [],
    tools: [],
    services: [],
    agents: [],
    settings: [],
    files: [],
    provided: new Map(),
    healthProbes: [],
    startHooks: [],
    stopHooks: [],
    calls: new Map()
  }
  let open = true
  const staging = <A extends unknown[]>(method: string, put: (...args: A) => void) => (...args: A): void => {
    if (!open) {
      throw svcError('plugin.late_call', `plugin '${plugin.name}' called ctx.${method} after register had returned; declare everything in register`)
    }
    put(...args)
  }
  const listOf = (method: string, list: unknown[], accepts: (value: unknown) => boolean, what: string) =>
    staging(method, (value: unknown) => {
      if (!accepts(value)) throw new TypeError(`ctx.${method} takes ${what}`)
      list.push(value)
      if (traced) stage.calls.set(value, new Error('declared here'))
    })
  const isFunction = (value: unknown): boolean => typeof value === 'function'
  const addRoute = listOf('addRoute', stage.routes, isRoute, 'a route made by defineRoute')
  const configureScope = listOf('configureScope', stage.scopes, isFunction, 'a function')
  const addTool = listOf('addTool', stage.tools, isTool, 'a tool made by defineTool')
  const addFile = listOf('addConfigFile', stage.files, isConfigFile, 'a file and the schema of what it holds, which takes an empty table')
  const byKind = {
    provider: {
      addProvider: listOf('addProvider', stage.providers, isProvider, 'a provider made by defineProvider'),
      addUpstreamTemplate: staging('addUpstreamTemplate', (template: UpstreamTemplateInput) => {
        const checked = upstreamTemplateSchema.safeParse(template)
        if (!checked.success) throw new TypeError(`ctx.addUpstreamTemplate: ${z.prettifyError(checked.error)}`)
        stage.templates.push(checked.data)
        if (traced) stage.calls.set(checked.data, new Error('declared here'))
      })
    },
    routes: { addRoute, configureScope },
    mcp: { addTool, addRoute, configureScope },
    runtime: { addRuntime: listOf('addRuntime', stage.runtimes, isRuntime, 'a driver made by defineRuntime') },
    service: {
      addService: listOf('addService', stage.services, isService, 'a service made by defineService'),
      addAgent: listOf('addAgent', stage.agents, isAgent, 'an agent made by defineAgent')
    }
  }
  const foreign = Object.entries(byKind).filter(([kind]) => kind !== plugin.kind).flatMap(([, methods]) => Object.keys(methods))
  const refusals = Object.fromEntries(foreign.map(method => [method, () => {
    const kinds = Object.entries(byKind).filter(([, methods]) => method in methods).map(([kind]) => `'${kind}'`)
    throw new TypeError(`kind '${plugin.kind}' has no ${method}; kinds that have it: ${kinds.join(', ')}`)
  }]))
  const context = {
    ...refusals,
    name: plugin.name,
    config,
    services,
    log,
    signal,
    get stateDir () { return state.folder() },
    table: state.table,
    provide: staging('provide', (ref: ServiceRef<unknown>, implementation: unknown) => {
      if (!(plugin.provides ?? []).some(declared => declared.id === ref.id)) {
        throw new TypeError(`ctx.provide('${ref.id}') is not listed in the plugin's \`provides\``)
      }
      stage.provided.set(ref.id, implementation)
    }),
    addSetting: staging('addSetting', (setting: SettingDefinition) => { stage.settings.push(setting) }),
    addConfigFile: (definition: ConfigFileDefinition) => {
      addFile(definition)
      return state.file(definition, signal)
    },
    addHealth: listOf('addHealth', stage.healthProbes, isFunction, 'a function'),
    onStart: listOf('onStart', stage.startHooks, isFunction, 'a function'),
    onStop: listOf('onStop', stage.stopHooks, isFunction, 'a function')
  }
  // after the getter, which a spread would call
  for (const kind of [plugin.kind].flat()) Object.assign(context, byKind[kind])
  return { stage, context: Object.freeze(context), seal: () => { open = false } }
}

function isConfigFile (value: unknown): boolean {
  const { file, schema } = (value ?? {}) as Partial<ConfigFileDefinition>
  return typeof file === 'string' && typeof schema?.safeParse === 'function' && schema.safeParse({}).success
}
