import type { Command } from 'commander'
import type { Cli } from '../cli.js'
import { examples } from '../terminal/help.js'
import type { SetupOptions } from '../setup/setup.js'
import { homeOption } from './serve.js'

const NOTE = 'Uses the running gateway, or the home itself if none runs.\n' +
  'Slots start once their models are downloaded; Ctrl-C keeps partial downloads.\n' +
  'Existing slots and models are not changed.'

export function addSetupCommand (program: Command, cli: Cli): void {
  program.command('setup')
    .description('set up a new machine: detect its hardware, create slots, download their models')
    .option('--auto', 'ask nothing: create a chat slot, and one for code if an agent needs it')
    .option('--storage-dir <dir>', 'where models are stored; default: that of svc.toml, else /var/lib/svc/models')
    .option('--no-pull', 'create the slots and download nothing')
    .option('--no-extensions', 'do not set up services beside the gateway')
    .addOption(homeOption())
    .option('--json', 'print what was set up and how the downloads ended, as the API reports it')
    .addHelpText('after', `\n${NOTE}`)
    .addHelpText('after', examples('svc setup', 'svc setup --auto --no-extensions --storage-dir /data/models'))
    .action(async (options: SetupOptions, command: Command) => {
      const { runSetup } = await import('../setup/setup.js')
      await runSetup(cli, command, options)
    })
}
