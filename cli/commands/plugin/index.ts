import { Option, type Command } from 'commander'
import type { Cli } from '../../cli.js'
import { examples } from '../../terminal/help.js'
import { templateKinds, type TemplateKind } from '../../plugins/template-kinds.js'
import type { ListOptions } from '../../plugins/list-plugins.js'
import { homeOption } from '../serve.js'

/** What touches the home on disk is loaded when it is needed: it costs more than the rest of the command line. */
export function addPluginCommands (program: Command, cli: Cli): void {
  const plugin = program.command('plugin').description('manage plugins: packages that extend the gateway')
  plugin.command('list')
    .description('list plugins that were added, and built-in ones that are not active')
    .option('--all', 'include active built-in ones')
    .option('--json', 'print the reports of the API, each with its installed package')
    .addOption(homeOption())
    .addHelpText('after', examples('svc plugin list'))
    .action(async (options: ListOptions, command: Command) => {
      const { listPlugins } = await import('../../plugins/list-plugins.js')
      await listPlugins(cli, command, options)
    })
  plugin.command('add <package>')
    .description('install a plugin and allow it: a folder, a tarball, or the name of a package')
    .addOption(homeOption())
    .addHelpText('after', '\nScripts of the package are not run. A running gateway of the same home loads it at once.')
    .addHelpText('after', examples('svc plugin add ./my-engine', 'svc plugin add svc-plugin-foo@1.2.0'))
    .action(async (spec: string, _options: object, command: Command) => {
      const { addPlugin } = await import('../../plugins/add-plugin.js')
      const { homeOf } = await import('../../offline/home/home-of.js')
      await addPlugin(cli, spec, await homeOf(cli, command))
    })
  plugin.command('reload [name...]')
    .description('have the gateway load plugins and engine descriptors that are new or have changed')
    .option('--json', 'print the API response; the exit code is the same either way')
    .addHelpText('after', '\nA running plugin stays active if its new version fails. A failed one that has\nnot changed is tried again only when you name it. A package runs as it was\nadded: bring a changed folder with `svc plugin add <folder>`.')
    .addHelpText('after', examples('svc plugin reload', 'svc plugin reload svc-plugin-foo'))
    .action(async (names: readonly string[], options: { json?: true }, command: Command) => {
      const { reloadAll } = await import('../../plugins/reload-plugins.js')
      await reloadAll(cli, command, names, options.json === true)
    })
  plugin.command('new <folder>')
    .description('write a new plugin: a package that builds, passes its tests and loads')
    .addOption(new Option('--kind <kind>', 'what it contributes').choices(templateKinds).default('engine'))
    .option('--no-install', 'do not run npm install')
    .addHelpText('after', '\nThe folder\'s name is the plugin\'s, without a leading svc-plugin-.')
    .addHelpText('after', examples('svc plugin new svc-plugin-mine', 'svc plugin new ./notes --kind routes'))
    .action(async (folder: string, options: { kind: TemplateKind, install: boolean }) => {
      const { newPlugin } = await import('../../plugins/new-plugin.js')
      await newPlugin(cli, folder, options.kind, options.install)
    })
  plugin.command('dev <folder>')
    .description('build a plugin, load it from its folder, reload it on each change, and show its log')
    .addOption(homeOption())
    .addHelpText('after', '\nStarts a gateway if none runs on the home. Ctrl-C unloads the plugin.')
    .addHelpText('after', examples('svc plugin dev ./svc-plugin-mine', 'svc plugin dev . --home .svc'))
    .action(async (folder: string, _options: object, command: Command) => {
      const { devPlugin } = await import('../../plugins/dev-plugin.js')
      const { homeOf } = await import('../../offline/home/home-of.js')
      await devPlugin(cli, folder, await homeOf(cli, command, { silent: 'home' }))
    })
  plugin.command('link [folder]')
    .description('link this gateway as svc-gateway into a package folder, for its build and tests')
    .addHelpText('after', '\nnpm install removes the link; `dev` and the script `dependencies` that `new` adds to package.json restore it.')
    .addHelpText('after', examples('svc plugin link'))
    .action(async (folder: string | undefined) => {
      const { linkCommand } = await import('../../plugins/gateway-link.js')
      await linkCommand(cli, folder ?? '.')
    })
  plugin.command('remove <name>')
    .description('uninstall a plugin and take it off the allow-list')
    .option('--force', 'even if slots or other plugins depend on it; the slots are unloaded first')
    .addOption(homeOption())
    .addHelpText('after', '\nTakes the name of its package, or the one that `svc plugin list` shows.')
    .addHelpText('after', examples('svc plugin remove svc-plugin-foo'))
    .action(async (name: string, options: { force?: true }, command: Command) => {
      const { removePlugin } = await import('../../plugins/remove-plugin.js')
      const { homeOf } = await import('../../offline/home/home-of.js')
      await removePlugin(cli, name, await homeOf(cli, command), options.force === true)
    })
}
