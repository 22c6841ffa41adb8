import type { Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import { CliFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { brokenLines } from '../../plugins/reload-plugins.js'
import { pluginListSchema } from '../../record/plugin-report.js'
import { diagnosticsSchema } from '../../record/diagnostics.js'
import { printReload, refusedLines, reloadGateway, type Reloaded } from '../../reload-plan.js'

/** Of `GET /api/status`: those of the files, and what does not fit between them. */
const statusSchema = z.looseObject({ diagnostics: diagnosticsSchema })

export function addConfigReload (config: Command, cli: Cli): void {
  config.command('reload')
    .description('have the gateway read its configuration files again')
    .option('--json', 'print the API response; the exit code is the same either way')
    .addHelpText('after', '\nExits with 1 if a file is invalid; the parts that it configures keep their last valid settings.')
    .addHelpText('after', examples('svc config reload'))
    .action(async (options: { json?: true }, command: Command) => {
      const reloaded = await reloadGateway(cli.client(command))
      if (options.json === true) cli.out.json(reloaded)
      else {
        printReload(cli.out, reloaded)
        await printFindings(cli, command, reloaded)
        await printBroken(cli, command)
      }
      const refused = refusedLines(reloaded._svc.diagnostics)
      if (refused.length === 0) return
      throw new CliFailure('configuration files are invalid; the parts that they configure keep their last valid settings', { hints: refused })
    })
}

/** What files that are sound by themselves ask for and cannot have: it takes their slots or upstreams alone. */
async function printFindings (cli: Cli, command: Command, { _svc: { diagnostics } }: Reloaded): Promise<void> {
  const status = await cli.client(command).call({ path: '/api/status' }, statusSchema).catch(() => ({ diagnostics: [] }))
  cli.signal.throwIfAborted()
  const refused = new Set(refusedLines(diagnostics))
  const lines = refusedLines(status.diagnostics).filter(line => !refused.has(line))
  if (lines.length > 0) cli.out.line('Problems in the configuration:')
  for (const line of lines) cli.out.line(line)
}

/** Plugins are looked at again, too; one that fails is no fault of the files. */
async function printBroken (cli: Cli, command: Command): Promise<void> {
  const reports = await cli.client(command).call({ path: '/api/plugins' }, pluginListSchema).catch(() => [])
  cli.signal.throwIfAborted()
  const lines = brokenLines(reports)
  if (lines.length > 0) cli.out.line('Plugins that are not active:')
  for (const line of lines) cli.out.line(line)
}
