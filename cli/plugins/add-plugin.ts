import { join } from 'node:path'
import type { Paths } from '../../kernel/contract/index.js'
import type { Cli } from '../cli.js'
import { CliFailure } from '../failure.js'
import { aboutLines, reasonOf, waitingText, type PluginReport } from '../record/plugin-report.js'
import { harmless } from '../terminal/text-width.js'
import { Npm } from '../npm.js'
import { OfflineHome } from './offline-home.js'
import { parsePackageSpec } from './package-spec.js'
import { PluginStore } from './plugin-store.js'
import { reloadPlugins } from './reload.js'

/** Installs a package, allows it by its exact name, and has the gateway of this home load it. */
export async function addPlugin (cli: Cli, text: string, paths: Paths): Promise<void> {
  const { out } = cli
  const spec = await parsePackageSpec(text, cli.process.cwd())
  const home = new OfflineHome(cli, paths)
  const store = new PluginStore(home.paths.plugins, new Npm(home.paths.plugins, cli.env, cli.signal))
  const installed = await home.exclusively(async () => {
    const added = await home.withoutHost(() => store.add(spec))
    await home.allow(added.name)
    return added
  })
  out.line(`${installed.name} ${installed.version} is installed, a plugin of kind ${installed.kind ?? 'unknown'}.`)
  out.pairs([
    ['integrity', installed.integrity ?? 'unknown'],
    ['folder', join(home.paths.plugins, 'node_modules', installed.name)],
    ['allowed', `in ${join(home.paths.etc, 'svc.toml')}`]
  ])
  const reports = await reloadPlugins(cli, home, installed.name)
  if (reports === null) return out.line('No gateway runs on this home; the next one loads it at its start.')
  tellState(cli, installed.name, reports)
}

function tellState ({ out }: Cli, name: string, reports: readonly PluginReport[]): void {
  const down = reports.filter(({ state }) => state !== 'active')
  if (reports.length === 0) throw new CliFailure(`the gateway does not list ${name} after the reload`, { hints: ['`svc plugin list` shows its plugins.'] })
  if (down.length > 0) {
    throw new CliFailure(`the gateway did not accept it: plugin ${down.map(report => `${report.name} is ${report.state}: ${reasonOf(report)}`).join('; ')}`, {
      hints: [`It stays installed. Fix it and add it again, or run \`svc plugin remove ${name}\`.`]
    })
  }
  const waiting = reports.filter(report => report.waiting != null)
  if (waiting.some(report => report.waiting?.state === 'failed')) {
    throw new CliFailure(`the gateway did not accept it: plugin ${waiting.map(report => `${report.name}: ${waitingText(report)!}`).join('; ')}`, {
      hints: ['The previous version keeps running. Fix the package and add it again.']
    })
  }
  for (const report of waiting) out.line(`Plugin ${report.name}: ${waitingText(report)!}.`)
  if (waiting.length === 0) out.line(`Plugin ${reports.map(report => report.name).join(', ')} is active.`)
  for (const line of reports.flatMap(aboutLines)) out.line(harmless(`${line}.`))
}
