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
    .description('replace choices that are no longer valid with valid ones')
    .option('--dry-run', 'print what would change, and change nothing')
    .option('--json', 'print the outcome of each choice')
    .addOption(homeOption())
    .addHelpText('after', '\nA running gateway does it; without one, the files are changed by the same rules.')
    .addHelpText('after', examples('svc capabilities migrate --dry-run', 'svc capabilities migrate'))
    .action(async (options: { dryRun?: true, json?: true }, command: Command) => {
      const { migrateCapabilities } = await import('../../offline/capabilities/migrate.js')
      await migrateCapabilities(cli, command, options)
    })
}
