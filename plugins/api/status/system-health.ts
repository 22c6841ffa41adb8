import { statfs } from 'node:fs/promises'
import type { ActivityLog, PluginStanding } from 'svc-gateway/plugin'
import { isDown, type StatusServices } from './report.js'
import type { SystemHealth } from './schemas.js'

/** Less than this, and configuration, state and logs may not be written any more. */
const FLOOR_MB = 500
const MIB = 1024 * 1024

/** Whether the parts of the gateway are well. Looks at two file systems and at memory; asks no engine. */
export async function systemHealth ({ activity, config, plugins, slots }: StatusServices): Promise<SystemHealth> {
  const names = slots.names()
  const errored = names.filter(name => slots.status(name).state === 'error').length
  const [state, etc] = await Promise.all([diskCheck(config.paths.state), diskCheck(config.paths.etc)])
  const standings = plugins.standings()
  const checks = {
    disk_state: state,
    disk_config: etc,
    slot_manager: { ok: errored === 0, slots: names.length, errored },
    event_bus: { ok: true },
    activity: activityCheck(activity),
    plugins: pluginsCheck(standings),
    mcp_mount: mcpCheck(standings)
  }
  return { status: Object.values(checks).every(({ ok }) => ok) ? 'ok' : 'degraded', checks }
}

async function diskCheck (path: string): Promise<SystemHealth['checks']['disk_state']> {
  const freeMb = await statfs(path).then(({ bavail, bsize }) => Math.floor(bavail * bsize / MIB), () => null)
  return { ok: freeMb !== null && freeMb >= FLOOR_MB, free_mb: freeMb, floor_mb: FLOOR_MB, path }
}

function activityCheck ({ failure }: ActivityLog): SystemHealth['checks']['activity'] {
  return { ok: failure === null, since: failure?.since ?? null, lost: failure?.lost ?? 0, reason: failure?.reason ?? null }
}

function pluginsCheck (reports: readonly PluginStanding[]): SystemHealth['checks']['plugins'] {
  const failed = reports.filter(isDown).map(({ name }) => name)
  return { ok: failed.length === 0, failed }
}

/** A tool server that was switched off is no fault. */
function mcpCheck (reports: readonly PluginStanding[]): SystemHealth['checks']['mcp_mount'] {
  const servers = reports.filter(({ kind }) => kind === 'mcp')
  return {
    ok: servers.every(({ state }) => state === 'active' || state === 'disabled'),
    servers: servers.filter(({ state }) => state === 'active').map(({ name }) => name)
  }
}
