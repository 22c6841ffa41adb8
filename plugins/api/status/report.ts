import {
  pluginStates, type ActivityLog, type ConfigCheck, type ConfigService, type DispatchService, type GatewayInfo,
  type HardwareService, type PluginStanding, type PluginService, type RuntimeInfo, type SlotService
} from 'svc-gateway/plugin'
import { hasMemory, isMemoryDegraded } from './features.js'
import type { Status } from './schemas.js'

export interface StatusServices {
  readonly activity: ActivityLog
  readonly config: ConfigService
  readonly configCheck: ConfigCheck
  readonly dispatch: DispatchService
  readonly hardware: HardwareService
  readonly info: GatewayInfo
  readonly plugins: PluginService
  readonly slots: SlotService
}

/** Answers from memory alone: a health check must not wait for an engine. */
export async function statusReport (services: StatusServices): Promise<Status> {
  const { config, configCheck, dispatch, info, plugins, slots } = services
  const findings = await configCheck.findings()
  const standings = plugins.standings()
  const { svc } = config.snapshot
  return {
    ...identity(services, standings),
    hardware: hardwareOf(services),
    slots: slots.names().map(name => slotLine(slots, name)),
    upstreams: dispatch.upstreams().map(({ name, kind, url }) => ({ name, kind, url: withoutCredentials(url) })),
    memory_enabled: hasMemory(standings, svc),
    memory_degraded: isMemoryDegraded(plugins),
    runtime: runtimeOf(info.runtime),
    runtimes: info.runtimes.map(view => ({ ...view, info: view.info === null ? null : runtimeOf(view.info) })),
    plugins: countPlugins(standings),
    diagnostics: findings.map(finding => ({ ...finding })),
    instance: info.instance,
    home: config.paths.home,
    started_at: info.startedAt,
    uptime_s: Math.floor(info.uptimeMs / 1000)
  }
}

export function identity (
  { activity, config, info, slots }: StatusServices, plugins: readonly PluginStanding[]
): Pick<Status, 'name' | 'version' | 'status' | 'degraded_by'> {
  const inError = slots.names().filter(name => slots.config(name).enabled && slots.status(name).state === 'error')
  const causes = [
    ...plugins.filter(isDown).map(({ name }) => `plugin ${name}`),
    ...inError.map(name => `slot ${name}`),
    ...new Set(config.snapshot.diagnostics.map(({ file }) => `file ${file}`)),
    ...(activity.failure === null ? [] : ['audit trail'])
  ]
  return { name: info.name, version: info.version, status: causes.length > 0 ? 'degraded' : 'ok', degraded_by: causes }
}

/** It should serve and does not. */
export function isDown ({ state }: PluginStanding): boolean {
  return state === 'failed' || state === 'skipped'
}

function hardwareOf ({ hardware: { info, defaultDevice } }: StatusServices): Status['hardware'] {
  if (info.probed_at === '') return null
  return { ram_mb: info.ram_mb, gpus: info.gpus.map(({ name }) => name), npu: info.npu.present, default_device: defaultDevice }
}

function runtimeOf ({ driver, version, endpoint, reason }: RuntimeInfo): Status['runtime'] {
  return { driver, version, endpoint, reason }
}

function slotLine (slots: SlotService, name: string): Status['slots'][number] {
  const { state, modelId, port, message } = slots.status(name)
  const { type, enabled } = slots.config(name)
  return { name, state, model: modelId, port, type, enabled, ...(message === '' ? {} : { message }) }
}

function countPlugins (standings: readonly PluginStanding[]): Status['plugins'] {
  const counts = Object.fromEntries(pluginStates.map(state => [state, standings.filter(plugin => plugin.state === state).length]))
  return counts as Status['plugins']
}

/** The status is public; a user name or password in a URL is not. */
function withoutCredentials (url: string): string {
  const parsed = new URL(url)
  if (parsed.username === '' && parsed.password === '') return url
  parsed.username = ''
  parsed.password = ''
  return parsed.href
}
