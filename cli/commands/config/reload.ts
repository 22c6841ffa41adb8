import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { CliFailure } from '../../failure.js'
import { examples } from '../../help.js'
import { printReload, refusedLines, reloadGateway } from '../../reload-plan.js'

export function addConfigReload (config: Command, cli: Cli): void {
  config.command('reload')
    .description('have the gateway read its configuration files again')
    .option('--json', 'print the answer of the API; the exit code tells all the same')
    .addHelpText('after', '\nIt ends with 1 when a file is broken: what it concerns keeps its last good form.')
    .addHelpText('after', examples('svc config reload'))
    .action(async (options: { json?: true }, command: Command) => {
      const reloaded = await reloadGateway(cli.client(command))
      if (options.json === true) cli.out.json(reloaded)
      else printReload(cli.out, reloaded)
      const refused = refusedLines(reloaded._svc.diagnostics)
      if (refused.length === 0) return
      throw new CliFailure('files of the configuration are broken; what they concern keeps its last good form', { hints: refused })
    })
}
