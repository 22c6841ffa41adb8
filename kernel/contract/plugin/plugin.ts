import type { z } from 'zod'
import { hasBrand, PLUGIN_BRAND, PLUGIN_PLACE } from '../brand.js'
import type { PluginContext, PluginKind } from './context.js'
import type { PluginErrors } from '../errors/define-errors.js'
import type { Requires, ServiceRef } from './service-ref.js'
import type { SettingsTable } from './settings-table.js'

/** Version of this contract, not of the gateway release. A plugin names the one it was written for. */
export const API_VERSION = 1

/** Where a plugin may keep files, of a home or of a copy of one. */
export interface PluginFolders {
  /** As `ctx.stateDir`. */
  readonly own: string
  /** The gateway's state folder. */
  readonly state: string
}

/**
 * A database that a plugin keeps in a file of SQLite. Before an update the new release upgrades a copy of it: one that it
 * cannot upgrade is not installed, and what it changes the form of is kept until it stays.
 */
export interface PluginDatabase {
  /** Absolute, below one of the folders. Pure; the file need not be there. */
  readonly path: (folders: PluginFolders) => string
  /**
   * Opens the file, brings it to the form of this release and closes it. Rejects where it cannot. Starts nothing else. The file
   * is a copy that no other process has open, never the one of a running gateway: it has no lock to wait for.
   */
  readonly upgrade: (path: string) => void | Promise<void>
}

export interface PluginDefinition<K extends PluginKind, R extends Requires, C extends z.ZodType> {
  /** kebab-case, unique; also the config table, the log field and the error domain. */
  readonly name: string
  /** What it contributes; a list for one that contributes several things, such as an engine and its routes. */
  readonly kind: K | readonly K[]
  readonly apiVersion: number
  readonly requires?: R
  readonly provides?: ReadonlyArray<ServiceRef<unknown>>
  readonly configSchema?: C
  /** Of what ships with the gateway: its table of svc.toml. A package has `[plugins.config.<name>]`, by its `configSchema`. */
  readonly settings?: SettingsTable
  /** Its error codes, made by `defineErrors`. Those of a package begin with its name. */
  readonly errors?: PluginErrors<never> | ReadonlyArray<PluginErrors<never>>
  readonly databases?: readonly PluginDatabase[]
  /** Declares only: no I/O. Deadline 5 s. */
  readonly register: (ctx: PluginContext<K, R, C>) => void | Promise<void>
}

export type AnyPlugin = PluginDefinition<PluginKind, Requires, z.ZodType>

/**
 * Marks an object as a plugin. It only adds a brand, so any copy of this function will do; the host checks
 * the shape when it loads the plugin.
 */
export function definePlugin<
  K extends PluginKind, R extends Requires = Record<never, never>, C extends z.ZodType = z.ZodType<unknown>
> (definition: PluginDefinition<K, R, C>): AnyPlugin {
  // its stack tells the file and the line, should something be wrong with the plugin
  return Object.freeze({ ...definition, [PLUGIN_BRAND]: true, [PLUGIN_PLACE]: new Error('defined here') }) as unknown as AnyPlugin
}

export function isPlugin (value: unknown): value is AnyPlugin {
  return hasBrand(value, PLUGIN_BRAND)
}
