import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { examples } from '../../help.js'
import type { ListOptions } from '../../plugins/list-plugins.js'
import { homeOption } from '../serve.js'

/** What touches the home on disk is loaded when it is needed: it costs more than the rest of the command line. */
export function addPluginCommands (program: Command, cli: Cli): void {
  const plugin = program.command('plugin').description('manage plugins: packages that extend the gateway')
  plugin.command('list')
    .description('list plugins that were added, and built-in ones that are not active')
    .option('--all', 'the built-in ones that are active, too')
    .option('--json', 'print reports of the API, each with what is installed for it')
    .addOption(homeOption())
    .addHelpText('after', examples('svc plugin list'))
    .action(async (options: ListOptions, command: Command) => {
      const { listPlugins } = await import('../../plugins/list-plugins.js')
      await listPlugins(cli, command, options)
    })
  plugin.command('add <package>')
    .description('install a plugin and allow it: a folder, a tarball, or the name of a package')
    .addOption(homeOption())
    .addHelpText('after', '\nNo script of the package is run. A running gateway of the same home loads it at once.')
    .addHelpText('after', examples('svc plugin add ./my-engine', 'svc plugin add svc-plugin-foo@1.2.0'))
    .action(async (spec: string, _options: object, command: Command) => {
      const { addPlugin } = await import('../../plugins/add-plugin.js')
      const { homeOf } = await import('../../offline/home/home-of.js')
      await addPlugin(cli, spec, await homeOf(cli, command))
    })
  plugin.command('reload [name...]')
    .description('have the gateway load plugins and engine descriptors that are new or have changed')
    .option('--json', 'print the answer of the API; the exit code tells all the same')
    .addHelpText('after', '\nWhat runs goes on when its new version fails. What failed and has not changed\nis judged again only by its name.')
    .addHelpText('after', examples('svc plugin reload', 'svc plugin reload svc-plugin-foo'))
    .action(async (names: readonly string[], options: { json?: true }, command: Command) => {
      const { reloadAll } = await import('../../plugins/reload-plugins.js')
      await reloadAll(cli, command, names, options.json === true)
    })
  plugin.command('remove <name>')
    .description('uninstall a plugin and take it off the allow-list')
    .option('--force', 'also when slots or other plugins depend on it; the slots are unloaded first')
    .addOption(homeOption())
    .addHelpText('after', examples('svc plugin remove svc-plugin-foo'))
    .action(async (name: string, options: { force?: true }, command: Command) => {
      const { removePlugin } = await import('../../plugins/remove-plugin.js')
      const { homeOf } = await import('../../offline/home/home-of.js')
      await removePlugin(cli, name, await homeOf(cli, command), options.force === true)
    })
}
