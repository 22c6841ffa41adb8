import { settingsOf, type ConfigService, type HardwareInfo, type PluginService, type PluginStanding } from 'svc-gateway/plugin'
import { memorySettings } from '../../services/memory/settings.js'
import type { Features } from './schemas.js'

/** What a dashboard may offer here: a feature is there when something answers its route. Pure. */
export function featuresOf (
  plugins: readonly PluginStanding[], svc: ConfigService['snapshot']['svc'], { npu }: Pick<HardwareInfo, 'npu'>
): Features {
  const routes = plugins.filter(({ state }) => state === 'active').flatMap(report => report.routes)
  const memory = settingsOf(svc, memorySettings)
  const isThere = hasMemory(plugins, svc)
  return {
    comfyui_switchover: routes.includes('POST /api/comfyui/switchover'),
    memory: isThere,
    mcp_supervisor: false,
    memory_engine: isThere ? memory.engine : null,
    npu: npu.present
  }
}

/** How the memory is, as its plugin tells; null while it is off, or not looked at yet. Pure. */
export function isMemoryDegraded (plugins: PluginService): boolean | null {
  const degraded = plugins.health('memory')?.degraded
  return typeof degraded === 'boolean' ? degraded : null
}

/** Switched on, and something answers for it. Pure. */
export function hasMemory (plugins: readonly PluginStanding[], svc: ConfigService['snapshot']['svc']): boolean {
  const { enabled } = settingsOf(svc, memorySettings)
  return enabled && plugins.some(({ state, routes }) => state === 'active' && routes.some(route => / \/api\/memory(?:\/|$)/.test(route)))
}
