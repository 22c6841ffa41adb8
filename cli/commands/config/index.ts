import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { editableNames } from '../../config-files.js'
import { examples } from '../../terminal/help.js'
import { homeOption } from '../serve.js'
import { addConfigHardware } from './hardware.js'
import { addConfigReload } from './reload.js'

interface FileOptions {
  readonly json?: true
}

/** Four work on the files of a home, the others ask the gateway. */
export function addConfigCommands (program: Command, cli: Cli): void {
  const config = program.command('config').description('show, edit and check the configuration files')
  config.command('show')
    .description('print svc.toml, without secrets')
    .option('--json', 'print it as JSON')
    .addOption(homeOption())
    .addHelpText('after', '\nThis is the file itself. GET /api/settings shows the effective settings, with defaults.')
    .addHelpText('after', examples('svc config show', 'svc config show --json | jq .slots'))
    .action(async (options: FileOptions, command: Command) => {
      const { showConfig } = await import('../../offline/config/show.js')
      const { homeOf } = await import('../../offline/home/home-of.js')
      await showConfig(cli, await homeOf(cli, command), options)
    })
  config.command('edit')
    .description('change a configuration file in an editor: $EDITOR, else $VISUAL, else vi')
    .argument('[file]', `file to edit: ${editableNames.join(', ')}, slots/<name> or agents/<name>`, 'svc')
    .addOption(homeOption())
    .addHelpText('after', '\nYou edit a copy. It replaces the file if it is valid, and is kept if not.')
    .addHelpText('after', '\nA running gateway of the same home reloads it at once.')
    .addHelpText('after', examples('svc config edit', 'svc config edit slots/agent', 'EDITOR="code --wait" svc config edit upstreams'))
    .action(async (file: string, _options: object, command: Command) => {
      const { editConfig } = await import('../../offline/config/edit.js')
      const { homeOf } = await import('../../offline/home/home-of.js')
      await editConfig(cli, await homeOf(cli, command), file)
    })
  config.command('migrate')
    .description('migrate svc.toml to the latest version')
    .addOption(homeOption())
    .addHelpText('after', '\nThe old file is kept beside it, with its version in the name.')
    .addHelpText('after', examples('svc config migrate'))
    .action(async (_options: object, command: Command) => {
      const { migrateSvcToml } = await import('../../offline/config/migrate.js')
      const { homeOf } = await import('../../offline/home/home-of.js')
      await migrateSvcToml(cli, await homeOf(cli, command))
    })
  config.command('validate')
    .description('check every configuration file, and report everything that is wrong')
    .option('--json', 'print one row for each file')
    .addOption(homeOption())
    .addHelpText('after', '\nExits with 1 if something is wrong. Needs no gateway.')
    .addHelpText('after', examples('svc config validate', 'svc config validate --json'))
    .action(async (options: FileOptions, command: Command) => {
      const { validateConfig } = await import('../../offline/config/validate.js')
      const { homeOf } = await import('../../offline/home/home-of.js')
      await validateConfig(cli, await homeOf(cli, command), options)
    })
  addConfigReload(config, cli)
  addConfigHardware(config, cli)
}
