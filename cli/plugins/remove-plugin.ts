import type { Paths } from '../../kernel/contract/index.js'
import type { Cli } from '../cli.js'
import { pathOf, type ApiClient } from '../client/client.js'
import { CliFailure, usageFailure } from '../failure.js'
import { addressOf } from '../offline/home/running-gateway.js'
import { packageOf, pluginListSchema, type PluginReport } from '../record/plugin-report.js'
import { dependentsOf, type Dependents } from '../offline/plugin-dependents.js'
import { slotRecordSchema } from '../record/slot-record.js'
import { Npm } from '../npm.js'
import { OfflineHome } from './offline-home.js'
import { isPackageName } from './package-spec.js'
import { PluginStore } from './plugin-store.js'
import { reloadPlugins } from './reload.js'

/**
 * Removes a package by its name, or by the name of a plugin that it has in the gateway of this home.
 *
 * Unloads the slots that run on it, takes it off the allow-list, has the gateway of this home drop it, and uninstalls
 * it, in this order. What depends on it is listed, and removed from under it only with `force`.
 */
export async function removePlugin (cli: Cli, asked: string, paths: Paths, force: boolean): Promise<void> {
  if (!isPackageName(asked)) throw usageFailure(`'${asked}' is not the name of a package`, ['`svc plugin list` shows what is installed.'])
  const home = new OfflineHome(cli, paths)
  const store = new PluginStore(home.paths.plugins, new Npm(home.paths.plugins, cli.env, cli.signal))
  const url = await addressOf(home.paths)
  const client = url === null ? null : cli.clientAt(url)
  // a gateway that does not answer is no reason to keep a plugin
  const reports = client === null ? [] : await client.call({ path: '/api/plugins' }, pluginListSchema).catch(() => [])
  const name = await packageNamed(asked, reports, home, store)
  const dependents = client === null ? await dependentsOf(paths, cli.env, name) : dependentsIn(reports, name)
  if (!force) refuseDependents(name, dependents)
  const reloaded = await home.exclusively(async () => {
    const installed = await store.find(name)
    if (installed === null && !(await home.allowed()).includes(name)) {
      throw new CliFailure(`${name} is not installed`, { hints: ['`svc plugin list` shows what is.'] })
    }
    if (client !== null) {
      for (const slot of dependents.slots) cli.out.note(`Unloading slot ${slot}.`)
      await unload(client, dependents.slots)
    }
    await home.disallow(name)
    // its code goes only when nothing runs it any more; a gateway that does not answer is no reason to keep it
    const reloaded = await reloadPlugins(cli, home, name).catch((error: unknown) => error as Error)
    // a request may have started one again until then
    if (client !== null && !(reloaded instanceof Error)) await unload(client, dependents.slots)
    if (installed !== null) await home.withoutHost(() => store.remove(name), name)
    return reloaded
  })
  cli.signal.throwIfAborted()
  cli.out.line(`${name} is removed.`)
  if (reloaded instanceof Error) throw reloaded
  if (reloaded !== null) cli.out.line('The gateway has unloaded it.')
  for (const slot of dependents.slots) {
    cli.out.line(`Slot ${slot} has no engine any more: svc slot edit ${slot} --provider <name>, or svc slot delete ${slot}`)
  }
}

/** The name of a package goes before that of a plugin in another one. */
async function packageNamed (
  name: string, reports: readonly PluginReport[], home: OfflineHome, store: PluginStore
): Promise<string> {
  const report = reports.find(report => report.name === name)
  const found = report === undefined ? null : packageOf(report)
  if (found === null || await store.find(name) !== null || (await home.allowed()).includes(name)) return name
  return found
}

function dependentsIn (reports: readonly PluginReport[], name: string): Dependents {
  const all = reports.filter(report => packageOf(report) === name).map(({ dependents }) => dependents)
  return { slots: all.flatMap(({ slots }) => slots), plugins: all.flatMap(({ plugins }) => plugins) }
}

function refuseDependents (name: string, { slots, plugins }: Dependents): void {
  const list = [...slots.map(slot => `slot ${slot}`), ...plugins.map(plugin => `plugin ${plugin}`)]
  if (list.length === 0) return
  throw new CliFailure(`${list.join(', ')} ${list.length === 1 ? 'depends' : 'depend'} on ${name}; nothing was removed`, {
    hints: [
      'Give the slots another provider or runtime (`svc slot edit <slot> --provider <name>`, `--runtime <name>`), or delete them.',
      `\`svc plugin remove ${name} --force\` unloads them first and removes it anyway; requests for them are refused then.`
    ]
  })
}

async function unload (client: ApiClient, slots: readonly string[]): Promise<void> {
  for (const slot of slots) {
    await client.call({ method: 'POST', path: `${pathOf`/api/slots/${slot}`}/unload`, body: {}, timeoutMs: null }, slotRecordSchema)
  }
}
