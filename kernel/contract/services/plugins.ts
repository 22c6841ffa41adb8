import type { EngineAbout } from '../provider/engine-about.js'
import type { ErrorRow } from '../errors/error-codes.js'
import type { SvcError } from '../errors/errors.js'
import type { SettingDefinition } from '../schemas/setting.js'

export const pluginStates = ['active', 'failed', 'skipped', 'disabled'] as const
export type PluginState = typeof pluginStates[number]

/** The twelve boot steps, in order. A failed plugin names the one it fell at. */
export const bootPhases = [
  'discover', 'manifest', 'import', 'shape', 'order', 'config', 'register', 'conflicts', 'preflight', 'mount', 'start', 'report'
] as const
export type BootPhase = typeof bootPhases[number]

/** What was found where an active plugin comes from, and is not in force. */
export interface WaitingVersion {
  /** Null for what has none, a descriptor for one. */
  readonly version: string | null
  /** It waits for a restart of the gateway, or it failed and has to be mended. */
  readonly state: 'restart' | 'failed'
  readonly phase: BootPhase | null
  readonly code: string | null
  readonly message: string
}

export interface PluginReport {
  readonly name: string
  readonly kind: string | null
  readonly state: PluginState
  /** Where it failed, or the last step it took. */
  readonly phase: BootPhase
  /** Error code, or null when active. */
  readonly code: string | null
  readonly message: string | null
  /** Milliseconds that its import, register and start took together. */
  readonly ms: number
  /** `builtin`, `package:<name>@<version>`, `descriptor:<file>` or `inline`. */
  readonly origin: string
  /** Of its package; null for what has none. */
  readonly version: string | null
  readonly waiting: WaitingVersion | null
  /** How often work of its own failed that nothing waited for: rejections and exceptions, since it was loaded. */
  readonly late_failures: number
  readonly last_late_failure: string | null
  readonly routes: readonly string[]
  readonly providers: readonly string[]
  /** As `server/name`; those that are left out are in `tool_problems`. */
  readonly tools: readonly string[]
  /** Tools that no server offers, because of their name or their schema. The plugin is active without them. */
  readonly tool_problems: ReadonlyArray<{ readonly tool: string, readonly message: string }>
  /** Whose its engines are, by the name of the provider; those that do not say are left out. */
  readonly about: Readonly<Record<string, EngineAbout>>
  /** What would go with it: slots whose engine it provides, and plugins that use its services. */
  readonly dependents: { readonly slots: readonly string[], readonly plugins: readonly string[] }
  readonly health?: Readonly<Record<string, unknown>>
}

/** Whether a plugin is up, and which routes it has. */
export type PluginStanding = Pick<PluginReport, 'name' | 'kind' | 'state' | 'routes'>

/** A setting that a plugin declared with `ctx.addSetting`. */
export interface PluginSetting extends SettingDefinition { readonly plugin: string }

/** An error code that a plugin brings. */
export interface PluginErrorRow extends ErrorRow {
  readonly code: string
  readonly plugin: string
}

export interface PluginConfigProblem {
  /** Dotted, below the plugin's table; empty for the table itself. */
  readonly path: string
  readonly message: string
}

/** A line that a plugin wrote with `ctx.log`, without secrets. */
export interface PluginLogLine {
  readonly ts: string
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
}

export interface PluginService {
  list (): readonly PluginReport[]
  /** The same without asking any plugin for its health: for what is asked all the time. */
  standings (): readonly PluginStanding[]
  /** What one plugin tells of its health; null for one that is not active. */
  health (name: string): Readonly<Record<string, unknown>> | null
  /**
   * Reads the allow-list, the packages and the descriptors again: loads what is new or changed, drops what is gone.
   * Running requests go on, and so does a plugin whose new version fails. What failed is judged again when it has changed,
   * or when `again` names it, by its own name or that of its package.
   */
  reload (again?: readonly string[]): Promise<readonly PluginReport[]>
  /** What the plugin of this name logs from now on, at every level. It need not be there yet. */
  log (name: string, signal: AbortSignal): AsyncIterable<PluginLogLine>
  /** Settings of the plugins that are active. */
  settings (): readonly PluginSetting[]
  /** Error codes of the plugins that are active, by code. Those of the gateway itself are `errorCodes`. */
  errors (): readonly PluginErrorRow[]
  /** The error of a code that was kept, the gateway's own or a plugin's, with its status; 502 for one that is in no table. */
  errorOf (code: string, message: string): SvcError
  /** What is wrong with a table `[plugins.config.<name>]`. Nothing is, for a plugin that is not loaded. */
  checkConfig (name: string, table: Readonly<Record<string, unknown>>): readonly PluginConfigProblem[]
}
