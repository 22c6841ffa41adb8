import type { Paths } from '../../kernel/contract/index.js'
import type { Cli } from '../cli.js'
import { CliFailure, usageFailure } from '../failure.js'
import { Npm } from './npm.js'
import { OfflineHome } from './offline-home.js'
import { isPackageName } from './package-spec.js'
import { PluginStore } from './plugin-store.js'
import { reloadPlugins } from './reload.js'

/** Takes a package off the allow-list, has the gateway of this home drop it, and uninstalls it, in this order. */
export async function removePlugin (cli: Cli, name: string, paths: Paths): Promise<void> {
  if (!isPackageName(name)) throw usageFailure(`'${name}' is no name of a package`, ['`svc plugin list` shows what is installed.'])
  const home = new OfflineHome(cli, paths)
  const store = new PluginStore(home.paths.plugins, new Npm(home.paths.plugins, cli.env, cli.signal))
  const reloaded = await home.exclusively(async () => {
    const installed = await store.find(name)
    const wasAllowed = await home.disallow(name)
    if (installed === null && !wasAllowed) throw new CliFailure(`${name} is not installed`, { hints: ['`svc plugin list` shows what is.'] })
    // its code goes only when nothing runs it any more; a gateway that does not answer is no reason to keep it
    const reloaded = await reloadPlugins(cli, home, name).catch((error: unknown) => error as Error)
    if (installed !== null) await home.withoutHost(() => store.remove(name))
    return reloaded
  })
  cli.signal.throwIfAborted()
  cli.out.line(`${name} is removed.`)
  if (reloaded instanceof Error) throw reloaded
  if (reloaded !== null) cli.out.line('The gateway has dropped it.')
}
