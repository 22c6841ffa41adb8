import type { Cli } from '../cli.js'
import { packageOf, pluginListSchema, type PluginReport } from '../plugin-report.js'
import { addressOf } from '../offline/home/running-gateway.js'
import type { OfflineHome } from './offline-home.js'

/**
 * Makes the gateway of this home look at its plugins again. What it tells of the plugins of one package, or null when no
 * gateway runs there.
 */
export async function reloadPlugins (cli: Cli, home: OfflineHome, packageName: string): Promise<readonly PluginReport[] | null> {
  const url = await addressOf(home.paths)
  if (url === null) return null
  // plugins are loaded and started meanwhile, each up to its deadline
  const reports = await cli.clientAt(url).call({ method: 'POST', path: '/api/plugins/reload', timeoutMs: null }, pluginListSchema)
  return reports.filter(report => packageOf(report) === packageName)
}
