import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { examples } from '../../terminal/help.js'
import { homeOption } from '../serve.js'
import { addCapabilitiesList } from './list.js'
import { addCapabilitiesSet } from './set.js'

export function addCapabilitiesCommands (program: Command, cli: Cli): void {
  const capabilities = program.command('capabilities')
    .description('choose what serves embeddings, reranking, speech and images')
  addCapabilitiesList(capabilities, cli)
  addCapabilitiesSet(capabilities, cli)
  capabilities.command('migrate')
    .description('replace choices that are no longer possible by ones that are')
    .option('--dry-run', 'say what would change, and change nothing')
    .option('--json', 'print what came of each choice')
    .addOption(homeOption())
    .addHelpText('after', '\nThe gateway does it where one runs; else it is done on the files, by the same rules.')
    .addHelpText('after', examples('svc capabilities migrate --dry-run', 'svc capabilities migrate'))
    .action(async (options: { dryRun?: true, json?: true }, command: Command) => {
      const { migrateCapabilities } = await import('../../offline/capabilities/migrate.js')
      await migrateCapabilities(cli, command, options)
    })
}
