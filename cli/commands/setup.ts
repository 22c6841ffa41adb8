import type { Command } from 'commander'
import type { Cli } from '../cli.js'
import { examples } from '../terminal/help.js'
import type { SetupOptions } from '../setup/setup.js'
import { homeOption } from './serve.js'

const NOTE = 'It works with the gateway that runs, else with the home itself.\n' +
  'Slots come up when their models have arrived; Ctrl-C keeps what has come so far.\n' +
  'What is there already is left as it is.'

export function addSetupCommand (program: Command, cli: Cli): void {
  program.command('setup')
    .description('set up a new machine: look at it, make slots, download their models')
    .option('--auto', 'ask nothing: a slot to chat with, one for code where an agent wants it')
    .option('--storage-dir <dir>', 'where models are stored; default is of svc.toml, else /var/lib/svc/models')
    .option('--no-pull', 'make the slots and download nothing')
    .option('--no-extensions', 'set up nothing beside the gateway')
    .addOption(homeOption())
    .option('--json', 'print what was set up, as the API reports it, and how the downloads ended')
    .addHelpText('after', `\n${NOTE}`)
    .addHelpText('after', examples('svc setup', 'svc setup --auto --no-extensions --storage-dir /data/models'))
    .action(async (options: SetupOptions, command: Command) => {
      const { runSetup } = await import('../setup/setup.js')
      await runSetup(cli, command, options)
    })
}
