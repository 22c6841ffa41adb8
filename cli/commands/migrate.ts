import type { Command } from 'commander'
import type { Cli } from '../cli.js'
import { examples } from '../terminal/help.js'
import type { LayoutOptions } from '../offline/layout/migrate-layout.js'
import { homeOption } from './serve.js'

export function addMigrateCommands (program: Command, cli: Cli): void {
  const migrate = program.command('migrate').description('migrate files of older installations to the current layout')
  migrate.command('model-layout')
    .description('link the models of an older installation into the folders of the present layout')
    .option('--apply', 'make the links; without it nothing is changed')
    .option('-f, --force', 'replace links with another target, never files')
    .option('--registry <file>', 'registry that lists what the models are for; default is the one of this home')
    .option('--mount-root <dir>', 'where the models are now', '/mnt/ai-models')
    .option('--canonical-root <dir>', 'where the links go; default is the models\' folder of this home')
    .option('--json', 'print the steps as JSON')
    .addOption(homeOption())
    .addHelpText('after', '\nNothing below the mount root is ever touched.\nWith --apply it exits with 1 if something was in the way.')
    .addHelpText('after', examples('svc migrate model-layout', 'svc migrate model-layout --apply --mount-root /mnt/ai-models'))
    .action(async (options: LayoutOptions, command: Command) => {
      const { migrateLayout } = await import('../offline/layout/migrate-layout.js')
      const { homeOf } = await import('../offline/home/home-of.js')
      await migrateLayout(cli, await homeOf(cli, command), options)
    })
}
