import type { Cli } from '../cli.js'
import type { ApiClient } from '../client/client.js'
import { packageOf, pluginListSchema, type PluginReport } from '../record/plugin-report.js'
import { addressOf } from '../offline/home/running-gateway.js'
import type { OfflineHome } from './offline-home.js'

/**
 * Makes the gateway of this home look at its plugins again. What it tells of the plugins of one package, or null when no
 * gateway runs there.
 */
export async function reloadPlugins (cli: Cli, home: OfflineHome, packageName: string): Promise<readonly PluginReport[] | null> {
  const url = await addressOf(home.paths)
  if (url === null) return null
  const reports = await postReload(cli.clientAt(url), [packageName])
  return reports.filter(report => packageOf(report) === packageName)
}

/** @param again plugins or packages that are judged once more although they failed and have not changed */
export function postReload (client: ApiClient, again: readonly string[]): Promise<readonly PluginReport[]> {
  // plugins are loaded and started meanwhile, each up to its deadline
  return client.call({ method: 'POST', path: '/api/plugins/reload', body: { again }, timeoutMs: null }, pluginListSchema)
}
