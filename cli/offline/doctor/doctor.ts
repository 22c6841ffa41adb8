import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { CliFailure } from '../../failure.js'
import { harmless, padTo } from '../../terminal/text-width.js'
import { homeOf } from '../home/home-of.js'
import { gatherFacts, type GatherOptions } from './gather.js'
import { verdicts, type Check } from './verdicts.js'

export interface DoctorOptions extends GatherOptions {
  readonly plain?: true
  readonly json?: true
}

/** Runs every check and says what came of each; rejects when one failed. A gateway that does not answer is one of them. */
export async function runDoctor (cli: Cli, command: Command, options: DoctorOptions): Promise<void> {
  const { out } = cli
  const paths = await homeOf(cli, command, { silent: 'home' })
  const checks = verdicts(await gatherFacts(cli, () => cli.client(command), paths, options))
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
  const indent = ' '.repeat((isPlain ? 5 : 2) + ID_WIDTH + 1)
  const texts = [message, ...next !== null && status !== 'ok' ? [next] : []].map(text => out.told(harmless(text)))
  const [first = '', ...more] = texts.flatMap(text => out.folded(text, indent.length))
  out.lines([`${shown} ${padTo(id, ID_WIDTH)} ${first}`, ...more.map(line => indent + line)])
}
