import type { Command } from 'commander'
import type { Cli } from '../cli.js'
import type { ApiClient } from '../client/client.js'
import { homeOf } from '../offline/home/home-of.js'
import { addressOf } from '../offline/home/running-gateway.js'
import { aboutLines, packageOf, pluginListSchema, reasonOf, waitingText, type PluginReport } from '../record/plugin-report.js'
import type { Column } from '../terminal/table.js'
import { asWritten } from '../client/route-words.js'
import { askedBy, targetOf } from '../client/target.js'
import { harmless } from '../terminal/text-width.js'
import { Npm } from '../npm.js'
import { OfflineHome } from './offline-home.js'
import { PluginStore } from './plugin-store.js'

export interface ListOptions {
  readonly all?: true
  readonly json?: true
}

/** What is known of a plugin: the gateway's report where one runs, and what lies in the home. */
type PluginRow = PluginReport & { readonly package: StoredFacts | null }

interface StoredFacts {
  readonly name: string
  readonly version: string | null
  readonly integrity: string | null
  readonly allowed: boolean
}

/** Lists plugins: what the gateway says that is meant, and, where it runs on a home of this machine, what is installed there. */
export async function listPlugins (cli: Cli, command: Command, options: ListOptions): Promise<void> {
  const { out } = cli
  const { kind } = targetOf(askedBy(command, cli.env))
  const rows = kind === 'gateway' ? await reports(cli.client(command)) : await localRows(cli, command)
  if (options.json === true) return out.json({ plugins: rows })
  const shown = options.all === true ? rows : rows.filter(row => !isSettled(row))
  if (shown.length > 0) out.table(columnsOf(cli), shown)
  else out.line('No plugins were added. Add one: svc plugin add <path or name>')
  const rest = rows.length - shown.length
  if (rest > 0) out.line(`${rest} built in, active: svc plugin list --all`)
  for (const row of rows.filter(({ message }) => message != null && message !== '')) {
    out.line(harmless(`${out.paint('yellow', '!')} ${row.name}: ${reasonOf(row)}`))
  }
  for (const row of shown) for (const line of aboutLines(row)) out.line(harmless(`${row.name}: ${line}`))
  for (const row of rows) {
    for (const note of [waitingText(row), lateText(row)]) {
      if (note !== null) out.line(harmless(`${out.paint('yellow', '!')} ${row.name}: ${note}`))
    }
  }
}

function lateText ({ late_failures: count, last_late_failure: last }: PluginRow): string | null {
  return count === 0 ? null : `${count} late ${count === 1 ? 'failure' : 'failures'}, the last: ${asWritten(last ?? '')}`
}

/** Built in, and doing what it is for. */
function isSettled ({ origin, state }: PluginRow): boolean {
  return origin === 'builtin' && state === 'active'
}

async function localRows (cli: Cli, command: Command): Promise<PluginRow[]> {
  const home = new OfflineHome(cli, await homeOf(cli, command))
  const url = await addressOf(home.paths)
  if (url !== null) return merged(await reports(cli.clientAt(url)), await storedRows(cli, home))
  if (home.paths.home === null) {
    const known = await reports(cli.client(command)).catch(() => null)
    cli.signal.throwIfAborted()
    if (known !== null) return known
  }
  cli.out.note(`No gateway runs on ${home.paths.home ?? 'this system'}; these are the packages that are installed.`)
  return await storedRows(cli, home)
}

async function reports (client: ApiClient): Promise<PluginRow[]> {
  return (await client.call({ path: '/api/plugins' }, pluginListSchema)).map(report => ({ ...report, package: null }))
}

async function storedRows (cli: Cli, home: OfflineHome): Promise<PluginRow[]> {
  const { plugins } = home.paths
  const store = new PluginStore(plugins, new Npm(plugins, cli.env, cli.signal))
  const [kept, allow] = await Promise.all([store.list(), home.allowed()])
  const others = allow.filter(name => !kept.some(each => each.name === name))
  // `svc plugin dev` links a folder without installing it
  const linked = (await Promise.all(others.map(name => store.find(name)))).filter(each => each !== null)
  const installed = [...kept, ...linked]
  const missing = others.filter(name => !linked.some(each => each.name === name))
  return [
    ...installed.map(({ name, version, kind, integrity }) => {
      const allowed = allow.includes(name)
      return row(name, kind, allowed ? 'installed' : 'not allowed', version, {
        name, version, integrity, allowed
      }, allowed ? null : `it is not in [plugins] allow; \`svc plugin add ${name}\` adds it`)
    }),
    ...missing.map(name => row(name, null, 'missing', null, { name, version: null, integrity: null, allowed: true },
      `it is on the allow-list but not installed; run \`svc plugin add ${name}\``))
  ]
}

function row (
  name: string, kind: string | null, state: string, version: string | null, stored: StoredFacts, message: string | null
): PluginRow {
  return { name, kind, state, code: null, phase: null, message, origin: `package:${name}@${version ?? '?'}`, providers: [], about: {}, late_failures: 0, dependents: { slots: [], plugins: [] }, package: stored }
}

/** Every report with what is stored of its package; what is stored and not reported comes last. */
function merged (known: readonly PluginRow[], stored: readonly PluginRow[]): PluginRow[] {
  const nameOf = (report: PluginRow): string => packageOf(report) ?? report.name
  const of = (report: PluginRow): PluginRow | undefined => stored.find(each => each.package?.name === nameOf(report))
  return [
    ...known.map(report => {
      const found = of(report)
      return { ...report, state: found?.state === 'missing' ? 'missing' : report.state, package: found?.package ?? null }
    }),
    ...stored.filter(each => !known.some(report => nameOf(report) === each.package?.name))
  ]
}

function columnsOf ({ out }: Cli): Array<Column<PluginRow>> {
  return [
    { title: 'NAME', cell: ({ name }) => name },
    {
      title: 'STATE',
      cell: ({ state }) => state,
      paint: (text, { state }) => out.paint(state === 'active' ? 'green' : state === 'installed' || state === 'disabled' ? 'dim' : 'red', text)
    },
    { title: 'KIND', cell: ({ kind }) => kind ?? '-' },
    { title: 'ORIGIN', cell: ({ origin }) => origin, flexible: true }
  ]
}
