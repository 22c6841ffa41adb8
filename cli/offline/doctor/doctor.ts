import type { Cli } from '../../cli.js'
import type { ApiClient } from '../../client.js'
import { CliFailure } from '../../failure.js'
import { OfflineHome } from '../../plugins/offline-home.js'
import { harmless, padTo } from '../../text-width.js'
import { gatherFacts, type GatherOptions } from './gather.js'
import { verdicts, type Check } from './verdicts.js'

export interface DoctorOptions extends GatherOptions {
  readonly plain?: true
  readonly json?: true
}

/** Runs every check and says what came of each; rejects when one failed. `client` counts when it was named, or none runs here. */
export async function runDoctor (cli: Cli, options: DoctorOptions, client: ApiClient, isNamed: boolean): Promise<void> {
  const { out } = cli
  const url = isNamed ? null : await new OfflineHome(cli, options.home).runningGateway()
  const checks = verdicts(await gatherFacts(cli, url === null ? client : cli.clientAt(url), options))
  const failed = checks.filter(({ status }) => status === 'fail')
  if (options.json === true) out.json({ ok: failed.length === 0, checks })
  else for (const check of checks) printCheck(cli, check, options.plain === true)
  if (failed.length > 0) throw new CliFailure(`failed: ${failed.map(({ id }) => id).join(', ')}`)
}

const styles = { ok: ['✓', 'green'], warn: ['!', 'yellow'], fail: ['✗', 'red'] } as const
const ID_WIDTH = 8

function printCheck ({ out }: Cli, { id, status, message, next }: Check, isPlain: boolean): void {
  const [mark, colour] = styles[status]
  const shown = isPlain ? padTo(status.toUpperCase(), 4) : out.paint(colour, mark)
  out.line(`${shown} ${padTo(id, ID_WIDTH)} ${harmless(message)}`)
  if (next !== null && status !== 'ok') out.line(`${' '.repeat(isPlain ? 5 : 2)}${' '.repeat(ID_WIDTH)} ${harmless(next)}`)
}
