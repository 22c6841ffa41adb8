import { Option, type Command } from 'commander'
import type { Cli } from '../cli.js'
import { examples } from '../terminal/help.js'
import type { UninstallOptions } from '../offline/uninstall/uninstall.js'
import { homeOption } from './serve.js'

const NOTE = 'It lists what goes and what stays before it removes anything, and asks at a terminal; without one, as in a script, it goes on. Configuration and data stay unless --purge is given, ' +
  'which asks for the word DELETE; any other answer keeps them, and without a terminal it needs --force. Links are removed and never followed, and folders with files of others stay. ' +
  'It ends with 1 when something could not be removed; run it again then.'

export function addUninstallCommand (program: Command, cli: Cli): void {
  program.command('uninstall')
    .description('remove the gateway from this machine')
    .option('--purge', 'configuration, data, images and the system user, too')
    .addOption(new Option('--clean-slate', 'the same as --purge'))
    .option('--keep-data', 'keep configuration and data: the default, but for --dev')
    .option('-f, --force', 'ask nothing, as SVC_FORCE=1 does')
    .option('--dev', 'a development tree instead: the homes below --home, or below .svc of the current folder')
    .option('--dry-run', 'list only')
    .option('--json', 'print what went and what stayed as JSON')
    .addOption(new Option('--root <dir>', 'where the files of the system are').hideHelp())
    .addOption(homeOption())
    .addHelpText('after', `\n${NOTE}`)
    .addHelpText('after', examples('sudo svc uninstall --dry-run', 'sudo svc uninstall', 'sudo svc uninstall --purge', 'svc uninstall --dev'))
    .action(async (options: UninstallOptions, command: Command) => {
      const { uninstall } = await import('../offline/uninstall/uninstall.js')
      await uninstall(cli, command, options)
    })
}
