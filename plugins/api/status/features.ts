import type { ConfigService, HardwareInfo, PluginService } from 'svc-gateway/plugin'
import type { Features } from './schemas.js'

/** What a dashboard may offer here: a feature is there when something answers its route. Pure. */
export function featuresOf (
  plugins: PluginService, { memory }: ConfigService['snapshot']['svc'], { npu }: Pick<HardwareInfo, 'npu'>
): Features {
  const routes = plugins.list().filter(({ state }) => state === 'active').flatMap(report => report.routes)
  const isThere = hasMemory(plugins, memory)
  return {
    comfyui_switchover: routes.includes('POST /api/comfyui/switchover'),
    memory: isThere,
    mcp_supervisor: false,
    memory_engine: isThere ? memory.engine : null,
    npu: npu.present
  }
}

/** Switched on, and something answers for it. Pure. */
export function hasMemory (plugins: PluginService, memory: ConfigService['snapshot']['svc']['memory']): boolean {
  return memory.enabled && plugins.list().some(({ state, routes }) => state === 'active' && routes.some(route => / \/api\/memory(?:\/|$)/.test(route)))
}
