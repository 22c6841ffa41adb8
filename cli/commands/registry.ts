import type { Command } from 'commander'
import type { Cli } from '../cli.js'
import { examples } from '../terminal/help.js'
import type { ImportOptions } from '../offline/import-registry.js'
import { homeOption } from './serve.js'

export function addRegistryCommands (program: Command, cli: Cli): void {
  const registry = program.command('registry').description('manage the model registry without a gateway')
  registry.command('import <archive>')
    .description('restore the registry from a backup of an earlier installation')
    .option('-f, --force', 'replace the existing registry')
    .option('--dest <file>', 'where to write it; default is the registry of this home')
    .addOption(homeOption())
    .addHelpText('after', '\nA tar archive, compressed or not. Only the registry is restored, not models or configuration.')
    .addHelpText('after', examples('svc registry import backup.tar.gz'))
    .action(async (archive: string, options: ImportOptions, command: Command) => {
      const { importRegistry } = await import('../offline/import-registry.js')
      const { homeOf } = await import('../offline/home/home-of.js')
      await importRegistry(cli, await homeOf(cli, command), archive, options)
    })
}
