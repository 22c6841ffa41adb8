import type { ConfigService, HardwareInfo, PluginService, PluginStanding } from 'svc-gateway/plugin'
import type { Features } from './schemas.js'

/** What a dashboard may offer here: a feature is there when something answers its route. Pure. */
export function featuresOf (
  plugins: readonly PluginStanding[], { memory }: ConfigService['snapshot']['svc'], { npu }: Pick<HardwareInfo, 'npu'>
): Features {
  const routes = plugins.filter(({ state }) => state === 'active').flatMap(report => report.routes)
  const isThere = hasMemory(plugins, memory)
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
export function hasMemory (plugins: readonly PluginStanding[], memory: ConfigService['snapshot']['svc']['memory']): boolean {
  return memory.enabled && plugins.some(({ state, routes }) => state === 'active' && routes.some(route => / \/api\/memory(?:\/|$)/.test(route)))
}
