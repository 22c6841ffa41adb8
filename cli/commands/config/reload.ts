import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { CliFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { brokenLines } from '../../plugins/reload-plugins.js'
import { pluginListSchema } from '../../record/plugin-report.js'
import { printReload, refusedLines, reloadGateway } from '../../reload-plan.js'

export function addConfigReload (config: Command, cli: Cli): void {
  config.command('reload')
    .description('have the gateway read its configuration files again')
    .option('--json', 'print the answer of the API; the exit code is the same either way')
    .addHelpText('after', '\nIt ends with 1 when a file is broken: what it concerns keeps its last good form.')
    .addHelpText('after', examples('svc config reload'))
    .action(async (options: { json?: true }, command: Command) => {
      const reloaded = await reloadGateway(cli.client(command))
      if (options.json === true) cli.out.json(reloaded)
      else {
        printReload(cli.out, reloaded)
        await printBroken(cli, command)
      }
      const refused = refusedLines(reloaded._svc.diagnostics)
      if (refused.length === 0) return
      throw new CliFailure('files of the configuration are broken; what they concern keeps its last good form', { hints: refused })
    })
}

/** Plugins are looked at again, too; one that fails is no fault of the files. */
async function printBroken (cli: Cli, command: Command): Promise<void> {
  const reports = await cli.client(command).call({ path: '/api/plugins' }, pluginListSchema).catch(() => [])
  cli.signal.throwIfAborted()
  const lines = brokenLines(reports)
  if (lines.length > 0) cli.out.line('Plugins that are not in force:')
  for (const line of lines) cli.out.line(line)
}
