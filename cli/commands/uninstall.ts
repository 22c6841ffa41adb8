import { Option, type Command } from 'commander'
import type { Cli } from '../cli.js'
import { examples } from '../terminal/help.js'
import type { UninstallOptions } from '../offline/uninstall/uninstall.js'
import { homeOption } from './serve.js'

const NOTE = 'It lists what it removes and what it keeps before it removes anything, and asks at a terminal; without one, as in a script, it proceeds. Configuration and data stay unless --purge is given, ' +
  'which asks for the word DELETE; any other answer keeps them, and without a terminal it needs --force. Links are removed and never followed, and folders with foreign files stay. ' +
  'It exits with 1 if something could not be removed; then run it again.'

export function addUninstallCommand (program: Command, cli: Cli): void {
  program.command('uninstall')
    .description('remove the gateway from this machine')
    .option('--purge', 'also remove configuration, data, images and the system user')
    .addOption(new Option('--clean-slate', 'the same as --purge'))
    .option('--keep-data', 'keep configuration and data: the default, except with --dev')
    .option('-f, --force', 'ask nothing, as SVC_FORCE=1 does')
    .option('--dev', 'a development tree instead: the homes below --home, or below .svc of the current folder')
    .option('--dry-run', 'list only')
    .option('--json', 'print what was removed and kept as JSON')
    .addOption(new Option('--root <dir>', 'root folder of the system files').hideHelp())
    .addOption(homeOption())
    .addHelpText('after', `\n${NOTE}`)
    .addHelpText('after', examples('sudo svc uninstall --dry-run', 'sudo svc uninstall', 'sudo svc uninstall --purge', 'svc uninstall --dev'))
    .action(async (options: UninstallOptions, command: Command) => {
      const { uninstall } = await import('../offline/uninstall/uninstall.js')
      await uninstall(cli, command, options)
    })
}
