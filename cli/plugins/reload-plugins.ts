import type { Command } from 'commander'
import type { Cli } from '../cli.js'
import { CliFailure } from '../failure.js'
import { packageOf, reasonOf, waitingText, type PluginReport } from '../record/plugin-report.js'
import { harmless } from '../terminal/text-width.js'
import { postReload } from './reload.js'

/** Has the gateway look at its plugins again and tells what is not in force; rejects when something is broken. */
export async function reloadAll (cli: Cli, command: Command, again: readonly string[], json: boolean): Promise<void> {
  const reports = await postReload(cli.client(command), again)
  const strange = again.filter(name => !reports.some(report => report.name === name || packageOf(report) === name))
  if (strange.length > 0) {
    throw new CliFailure(`there is no plugin ${strange.join(', ')}`, { hints: ['`svc plugin list` names those that there are; the others were reloaded.'] })
  }
  if (json) cli.out.json({ plugins: reports })
  else cli.out.line('The gateway has reloaded its plugins.')
  const waiting = reports.filter(({ waiting }) => waiting?.state === 'restart')
  if (!json) for (const report of waiting) cli.out.line(harmless(`${report.name}: ${waitingText(report)!}`))
  const broken = brokenLines(reports)
  if (broken.length === 0) return
  throw new CliFailure('some plugins are not active', {
    hints: [...broken, 'Unchanged plugins were not tried again; `svc plugin reload <name>` does so.']
  })
}

/** Plugins that the gateway has and that are not in force, a line each. */
export function brokenLines (reports: readonly PluginReport[]): string[] {
  return reports.flatMap(report => brokenLine(report) ?? [])
}

function brokenLine (report: PluginReport): string | null {
  if (report.state === 'failed' || report.state === 'skipped') return harmless(`  ${report.name}: ${reasonOf(report)}`)
  return report.waiting?.state === 'failed' ? harmless(`  ${report.name}: ${waitingText(report)!}`) : null
}
