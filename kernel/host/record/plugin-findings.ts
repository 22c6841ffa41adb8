import type { AnyPlugin, ErrorCode, Finding, SvcConfig } from '../../contract/index.js'
import { configFiles } from '../../config/parts/config-parts.js'
import { checkShape, dotted, type Checked } from '../../config/check/shape-check.js'
import { suggest } from '../../contract/text/suggest.js'

type Tables = SvcConfig['plugins']['config']

export interface PluginFault {
  readonly code: ErrorCode
  readonly message: string
  /** Nothing is installed under its name. */
  readonly isMissing: boolean
}

/** A plugin as far as it got. */
export interface KnownPlugin {
  readonly name: string
  readonly origin: string
  /** Null for one that could not be imported, and for one that was not. */
  readonly plugin: AnyPlugin | null
  /** Why it could not be imported. */
  readonly fault: PluginFault | null
}

/** The table `[plugins.config.<name>]` as the plugin takes it. `problems` have the whole path. Pure. */
export function checkPluginTable ({ name, configSchema }: AnyPlugin, table: Readonly<Record<string, unknown>>): Checked<unknown> {
  if (configSchema === undefined) return { value: table, problems: [] }
  return checkShape(configSchema, table, { audience: 'file', userPath: path => ['plugins', 'config', name, ...path] })
}

/** Plugins that cannot be imported, tables that they do not take, and tables that no plugin takes. Pure. */
export function pluginFindings (plugins: readonly KnownPlugin[], tables: Tables): readonly Finding[] {
  const names = plugins.map(({ name }) => name)
  return [
    ...plugins.flatMap(importFinding),
    ...plugins.flatMap(({ plugin }) => plugin === null ? [] : tableFindings(plugin, tables[plugin.name] ?? {})),
    ...Object.keys(tables).filter(name => !names.includes(name)).map(name => unknownTable(name, names))
  ]
}

function tableFindings (plugin: AnyPlugin, table: Readonly<Record<string, unknown>>): Finding[] {
  return checkPluginTable(plugin, table).problems.map(({ path, message }) =>
    ({ file: configFiles.svc, path: dotted(path), message, code: 'plugin.config_invalid', severity: 'error' }))
}

/**
 * Of what came with the release, no file says anything. A package that is broken is no fault of the file that allows it;
 * one that is not there is.
 */
function importFinding ({ name, origin, fault }: KnownPlugin): Finding[] {
  if (fault === null) return []
  const [, kind, rest = ''] = /^(package|descriptor):(.+)$/.exec(origin) ?? []
  if (kind === undefined) return []
  const { code, isMissing } = fault
  const message = `plugin '${name}': ${fault.message}`
  if (kind === 'descriptor') return [{ file: rest, path: '', code, message, severity: 'error' }]
  return [{ file: configFiles.svc, path: 'plugins.allow', code, message, severity: isMissing ? 'error' : 'warning' }]
}

function unknownTable (name: string, names: readonly string[]): Finding {
  const meant = suggest(name, names)
  return {
    file: configFiles.svc,
    path: dotted(['plugins', 'config', name]),
    message: meant === null ? 'no such plugin; `svc plugin list` shows all plugins' : `no such plugin; did you mean ${meant}?`,
    code: 'plugin.not_found',
    severity: 'warning'
  }
}
