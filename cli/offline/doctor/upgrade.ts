import { access, cp, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { messageOf, type Paths } from '../../../kernel/contract/index.js'
import { resolvePaths } from '../../../kernel/config/paths.js'
import { openDatabase } from '../../../kernel/state/database.js'
import type { Cli } from '../../cli.js'
import { CliFailure } from '../../failure.js'
import { harmless } from '../../text-width.js'
import { version } from '../../version.js'
import { checkHome } from '../config/check-home.js'

export interface UpgradeOptions {
  readonly json?: true
}

interface Verdict {
  readonly version: string
  readonly ok: boolean
  readonly config: { readonly ok: boolean, readonly problems: readonly string[] }
  readonly database: DatabaseVerdict
  readonly plugins: ReadonlyArray<{ readonly name: string, readonly ok: boolean, readonly why: string | null }>
}

interface DatabaseVerdict {
  readonly ok: boolean
  /** Version before and after; null where there was no database. */
  readonly from: number | null
  readonly to: number | null
  readonly message: string | null
}

/** Runs what a start of this release would do first, on a copy of the home. Rejects when it cannot take the home over. */
export async function checkUpgrade (cli: Cli, paths: Paths, { json }: UpgradeOptions): Promise<void> {
  await mkdir(paths.state, { recursive: true })
  // beside the home: a copy of secrets does not leave its disk
  const folder = await mkdtemp(join(paths.state, 'upgrade-'))
  try {
    const copy = await copyHome(paths, folder)
    const [config, database] = await Promise.all([checkConfig(copy, cli), checkDatabase(paths.database, copy.database)])
    const plugins = config.plugins
    const ok = config.ok && database.ok && plugins.every(plugin => plugin.ok)
    const verdict: Verdict = { version, ok, config: { ok: config.ok, problems: config.problems }, database, plugins }
    if (json === true) cli.out.json(verdict)
    else print(cli, verdict)
    if (!ok) throw new CliFailure(`release ${version} cannot take over this home as it is`)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The configuration as it is, and links to what is only read. The database is copied by itself. */
async function copyHome (paths: Paths, folder: string): Promise<Paths> {
  const copy = resolvePaths({}, { home: folder })
  await mkdir(copy.state, { recursive: true })
  if (await isThere(paths.etc)) await cp(paths.etc, copy.etc, { recursive: true })
  for (const key of ['plugins', 'models'] as const) {
    if (await isThere(paths[key])) await symlink(resolve(paths[key]), copy[key])
  }
  if (await isThere(dirname(paths.registry))) await cp(dirname(paths.registry), dirname(copy.registry), { recursive: true })
  return copy
}

async function checkConfig (paths: Paths, { env }: Cli): Promise<Verdict['config'] & Pick<Verdict, 'plugins'>> {
  const { parts, snapshot, plugins } = await checkHome(paths, { ...env, SVC_HOME: undefined })
  // what is wrong with a slot or an upstream was so before, and keeps no gateway from starting
  const problems = parts.svc.value === null || snapshot === null
    ? parts.svc.diagnostics.map(({ file, path, message }) => `${file}: ${path === '' ? '' : `${path} `}${message}`) : []
  return {
    ok: snapshot !== null,
    problems,
    plugins: plugins.map(({ name, fault, trouble }) => ({ name, ok: fault === null, why: fault?.message ?? trouble }))
  }
}

/** A copy of what is committed, taken beside a gateway that writes; then all that this release has to migrate. */
async function checkDatabase (original: string, copy: string): Promise<DatabaseVerdict> {
  let from: number | null = null
  try {
    if (await isThere(original)) {
      const { default: Driver } = await import('libsql')
      const source = new Driver(original, { readonly: true })
      try {
        source.exec('PRAGMA busy_timeout = 5000')
        source.exec(`VACUUM INTO '${copy.replaceAll('\'', '\'\'')}'`)
      } finally {
        source.close()
      }
    }
    const { default: Driver } = await import('libsql')
    const before = new Driver(copy)
    from = versionOf(before)
    before.close()
    const database = await openDatabase({ path: copy })
    const to = versionOf(database.connection)
    database.close()
    return { ok: true, from, to, message: null }
  } catch (error) {
    return { ok: false, from, to: null, message: messageOf(error) }
  }
}

interface Reader { prepare (sql: string): { all (): unknown[] } }

function versionOf (connection: Reader): number | null {
  const [table] = connection.prepare('SELECT 1 FROM sqlite_master WHERE name = \'schema_migrations\'').all()
  if (table === undefined) return null
  return (connection.prepare('SELECT max(version) AS version FROM schema_migrations').all() as { version: number | null }[])[0]!.version
}

function print ({ out }: Cli, { version: own, config, database, plugins }: Verdict): void {
  const mark = (ok: boolean): string => out.paint(ok ? 'green' : 'red', ok ? '✓' : '✗')
  out.line(`${mark(config.ok)} configuration${config.ok ? ` is read by release ${own}` : harmless(`: ${config.problems.join('; ')}`)}`)
  const [from, to] = [database.from ?? 0, database.to ?? 0]
  const moved = from === to ? `stays at version ${to}` : `goes from version ${from} to ${to}`
  out.line(`${mark(database.ok)} database ${database.ok ? moved : harmless(database.message ?? '')}`)
  for (const { name, why } of plugins.filter(({ ok }) => !ok)) {
    out.line(harmless(`${mark(false)} plugin ${name}: ${why ?? 'it does not load'}`))
  }
  if (plugins.every(({ ok }) => ok)) out.line(`${mark(true)} ${plugins.length} plugins load`)
}

function isThere (path: string): Promise<boolean> {
  return access(path).then(() => true, () => false)
}
