import { join, resolve } from 'node:path'
import type { Command } from 'commander'
import { messageOf } from '../../../kernel/contract/index.js'
import type { Cli } from '../../cli.js'
import { ask, confirm } from '../../terminal/confirm.js'
import { CliFailure, usageFailure } from '../../failure.js'
import { askedBy, targetOf } from '../../client/target.js'
import { developmentThings, machineThings, type Extent } from './inventory.js'
import type { Found, Thing } from './thing.js'

export interface UninstallOptions {
  readonly purge?: true
  readonly cleanSlate?: true
  readonly keepData?: true
  readonly force?: true
  readonly dev?: true
  readonly dryRun?: true
  readonly json?: true
  readonly root?: string
}

type Outcome = 'listed' | 'removed' | 'failed'
interface Row { readonly kind: Thing['kind'], readonly name: string, readonly outcome: Outcome, readonly why: string | null }

const WORD = 'DELETE'

/** Says what goes and what stays, asks where data goes, and takes it away. Goes on over what fails, and tells it at the end. */
export async function uninstall (cli: Cli, command: Command, options: UninstallOptions): Promise<void> {
  const { dev, json, dryRun } = options
  const asksPurge = options.purge === true || options.cleanSlate === true
  if (asksPurge && options.keepData === true) throw usageFailure('--keep-data and --purge cannot be used together')
  const isForced = options.force === true || cli.env.SVC_FORCE === '1'
  const target = targetOf(askedBy(command, cli.env))
  const named = target.kind === 'home' ? resolve(cli.process.cwd(), target.home) : null
  const home = dev === true ? named ?? join(cli.process.cwd(), '.svc') : named ?? cli.usual.home
  const onRunning = (failure: unknown): void => {
    if (dryRun !== true || !(failure instanceof CliFailure)) throw failure
    cli.out.note([`Warning: ${failure.message}`, ...failure.hints].join('\n'))
  }
  const take = (purge: boolean): Promise<Found> => {
    const extent: Extent = { env: cli.env, root: options.root ?? '', home, purge, keepData: options.keepData === true, onRunning }
    return dev === true ? developmentThings(extent) : machineThings(extent)
  }
  let purge = asksPurge
  let found = await take(purge)
  requireRoot(options, home, found)
  if (json !== true) tell(cli, found, dev === true ? home! : null)
  if (dryRun === true || found.things.length === 0) return report(cli, options, purge, found, found.things.map(thing => rowOf(thing, 'listed', null)))
  if (purge && !isForced && !await typesWord(cli)) {
    purge = false
    found = await take(false)
    if (json !== true) cli.out.line('Configuration and data stay. This is removed:')
    if (json !== true) tell(cli, found, dev === true ? home! : null)
  } else if (!isForced && !purge && !await confirm(cli, 'Remove this?')) {
    throw new CliFailure('nothing was removed')
  }
  report(cli, options, purge, found, await removeAll(cli, found.things))
}

async function removeAll (cli: Cli, things: readonly Thing[]): Promise<readonly Row[]> {
  const rows: Row[] = []
  for (const thing of things) {
    cli.signal.throwIfAborted()
    try {
      await thing.remove()
      rows.push(rowOf(thing, 'removed', null))
    } catch (error) {
      rows.push(rowOf(thing, 'failed', messageOf(error)))
      // what a running gateway has open is not taken from under it
      if (thing.kind === 'service') return [...rows, ...things.slice(rows.length).map(other => rowOf(other, 'failed', 'the gateway is still running'))]
    }
  }
  return rows
}

function report (cli: Cli, { json, dryRun, dev }: UninstallOptions, purge: boolean, { kept }: Found, rows: readonly Row[]): void {
  const failed = rows.filter(({ outcome }) => outcome === 'failed')
  if (json === true) cli.out.json({ mode: dev === true ? 'dev' : purge ? 'purge' : 'conservative', dry_run: dryRun === true, things: rows, kept })
  else if (rows.length === 0) cli.out.line('There is nothing to remove.')
  else if (dryRun === true) cli.out.line('Nothing was removed: this was a dry run.')
  else if (failed.length === 0) cli.out.line('Everything is removed.')
  if (failed.length === 0) return
  throw new CliFailure(`${failed.length} of ${rows.length} could not be removed; fix the cause and run it again`, {
    hints: failed.map(({ name, why }) => `${name}: ${why}`)
  })
}

function rowOf ({ kind, name }: Thing, outcome: Outcome, why: string | null): Row {
  return { kind, name, outcome, why }
}

function tell ({ out }: Cli, { things, kept }: Found, prefix: string | null): void {
  if (things.length > 0) out.line(prefix === null ? 'This goes:' : `This is removed from ${prefix}:`)
  out.lines(things.map(({ kind, name }) => `  ${kind.padEnd(13)}  ${name}`))
  if (kept.length > 0) out.line('This stays:')
  for (const { name, why } of kept) out.line(`  ${name}: ${why}`)
}

/** The machine's files are root's. A dry run, a home of its own and a folder of a test are not. */
function requireRoot ({ dev, dryRun, root }: UninstallOptions, home: string | null, { things }: Found): void {
  const isMachine = dev !== true && root === undefined && (home === null || things.some(({ kind }) => kind === 'service' || kind === 'user'))
  if (!isMachine || dryRun === true || things.length === 0 || process.getuid?.() === 0) return
  throw new CliFailure('uninstalling the gateway of the machine requires root', { hints: ['Run it with sudo, or preview it: svc uninstall --dry-run'] })
}

/** Without a terminal there is no word to wait for. Throws then, and at Ctrl-C; any other answer is a no. */
async function typesWord (cli: Cli): Promise<boolean> {
  if (cli.process.stdin.isTTY !== true) {
    throw new CliFailure('nothing was removed: --purge deletes configuration and data, and there is no terminal to confirm it at', {
      hints: ['Add --force, or set SVC_FORCE=1.']
    })
  }
  return await ask(cli, `Type ${WORD} to remove configuration and data too; anything else keeps them: `) === WORD
}
