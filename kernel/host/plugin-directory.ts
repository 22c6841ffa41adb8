import {
  isErrorCode, SvcError, svcError, type ErrorRow, type ConfigService, type PluginConfigProblem, type PluginErrorRow,
  type PluginLogLine, type PluginReport, type PluginSetting, type PluginStanding, type ProviderCatalog, type ServiceCatalog,
  type ServiceDescriptor
} from '../contract/index.js'
import { noProviders, type LaidProviders } from '../config/parts/laid-providers.js'
import { checkShape, dotted } from '../config/check/shape-check.js'
import type { DocumentedRoute } from '../http/openapi/openapi.js'
import { errorsOf } from './mount/conflicts.js'
import { HostedAgents } from './record/hosted-agents.js'
import type { PluginLogs } from './watch/plugin-logs.js'
import type { KnownPlugin } from './record/plugin-findings.js'
import { healthOf, toReport, toStanding, usersOf } from './record/plugin-report.js'
import { isAlive, knownPlugin, nameOf, type PluginRecord } from './record/record.js'

export interface PluginDirectoryDeps {
  readonly config: Pick<ConfigService, 'snapshot'>
  readonly logs: Pick<PluginLogs, 'follow'>
}

/** The plugins that there are, as far as each got, and what those that are up bring. */
export class PluginDirectory {
  readonly #deps: PluginDirectoryDeps
  protected records: readonly PluginRecord[] = []

  /** Providers of plugins that are up. */
  readonly providers: ProviderCatalog

  /** What plugins that are up bring to run beside the gateway. */
  readonly companions: ServiceCatalog

  /** Agents that plugins which are up describe. */
  readonly agents = new HostedAgents()

  /** Looked at by every request: made anew when a plugin comes or goes. */
  protected laid = noProviders

  constructor (deps: PluginDirectoryDeps) {
    this.#deps = deps
    const laid = (): LaidProviders => this.laid
    this.providers = {
      get aliases () { return laid().aliases },
      get deviceWords () { return laid().deviceWords },
      list: () => laid().list(),
      get: name => laid().get(name),
      defaultFor: (type, device) => laid().defaultFor(type, device),
      nameFor: slot => laid().nameFor(slot),
      ownerOf: profile => laid().ownerOf(profile)
    }
    const companions = (): ServiceDescriptor[] => this.records.filter(isAlive).flatMap(({ stage }) => stage?.services ?? [])
    this.companions = { list: companions, get: id => companions().find(service => service.id === id) }
  }

  list (): readonly PluginReport[] {
    const slots = [...this.#deps.config.snapshot.slots.values()]
    const users = usersOf(this.records)
    return this.records.map(record => toReport(record, { users, slots }))
  }

  standings (): readonly PluginStanding[] {
    return this.records.map(toStanding)
  }

  health (name: string): Readonly<Record<string, unknown>> | null {
    const record = this.records.find(each => each.state === 'active' && nameOf(each) === name)
    return record?.stage == null ? null : healthOf(record.stage)
  }

  /** All of them, as far as each got. */
  known (): readonly KnownPlugin[] {
    return this.records.map(knownPlugin)
  }

  log (name: string, signal: AbortSignal): AsyncIterable<PluginLogLine> {
    return this.#deps.logs.follow(name, signal)
  }

  settings (): readonly PluginSetting[] {
    return this.records.filter(isAlive).flatMap(record =>
      (record.stage?.settings ?? []).map(setting => ({ ...setting, plugin: nameOf(record) })))
  }

  errors (): readonly PluginErrorRow[] {
    return this.records.filter(isAlive).flatMap(record => errorsOf(record.plugin ?? {}).flatMap(({ rows }) =>
      Object.entries<ErrorRow>(rows).map(([code, row]) => ({ code, ...row, plugin: nameOf(record) }))))
  }

  errorOf (code: string, message: string): SvcError {
    if (isErrorCode(code)) return svcError(code, message)
    const { status, heals = false } = this.errors().find(row => row.code === code) ?? { status: 502 }
    return new SvcError(code, status, message, { heals })
  }

  checkConfig (name: string, table: Readonly<Record<string, unknown>>): readonly PluginConfigProblem[] {
    const schema = this.records.find(record => isAlive(record) && nameOf(record) === name)?.plugin?.configSchema
    if (schema === undefined) return []
    const { problems } = checkShape(schema, table, { audience: 'client' })
    return problems.map(({ path, message }) => ({ path: dotted(path), message }))
  }

  get routes (): readonly DocumentedRoute[] {
    return this.records.filter(isAlive).flatMap(record =>
      (record.stage?.routes ?? []).map(route => ({ plugin: nameOf(record), route })))
  }
}
