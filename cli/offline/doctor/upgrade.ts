import { access, cp, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import type { Paths } from '../../../kernel/contract/index.js'
import { resolvePaths } from '../../../kernel/config/paths.js'
import { openDatabase } from '../../../kernel/state/database.js'
import type { Cli } from '../../cli.js'
import { CliFailure } from '../../failure.js'
import { harmless } from '../../terminal/text-width.js'
import { version } from '../../version.js'
import { checkHome } from '../config/check-home.js'
import type { DeclaredPlugin } from '../declared-plugins.js'
import { tryDatabase, type DatabaseVerdict } from './database-copy.js'

export interface UpgradeOptions {
  readonly json?: true
}

interface Verdict {
  readonly version: string
  readonly ok: boolean
  readonly config: { readonly ok: boolean, readonly problems: readonly string[] }
  readonly database: DatabaseVerdict
  /** Those that plugins keep in files of their own, where there is one. */
  readonly databases: readonly PluginDatabaseVerdict[]
  readonly plugins: ReadonlyArray<{ readonly name: string, readonly ok: boolean, readonly why: string | null }>
}

interface PluginDatabaseVerdict extends DatabaseVerdict {
  readonly plugin: string
  /** Below the state folder. */
  readonly file: string
}

/** Runs what a start of this release would do first, on a copy of the home. Rejects when it cannot take the home over. */
export async function checkUpgrade (cli: Cli, paths: Paths, { json }: UpgradeOptions): Promise<void> {
  await mkdir(paths.state, { recursive: true })
  // beside the home: a copy of secrets does not leave its disk; the pid keeps a gateway that starts from sweeping it away
  const folder = await mkdtemp(join(paths.state, `upgrade-${process.pid}-`))
  try {
    const copy = await copyHome(paths, folder)
    const [checked, database] = await Promise.all([checkConfig(copy, cli), checkDatabase(paths.database, copy.database)])
    const { config, plugins, declared } = checked
    const databases = await checkPluginDatabases(declared, paths, copy)
    const ok = config.ok && database.ok && plugins.every(plugin => plugin.ok) && databases.every(each => each.ok)
    const verdict: Verdict = { version, ok, config, database, databases, plugins }
    if (json === true) cli.out.json(verdict)
    else print(cli, verdict)
    if (!ok) throw new CliFailure(`release ${version} cannot use this home as it is`)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

interface CheckedConfig {
  readonly config: Verdict['config']
  readonly plugins: Verdict['plugins']
  readonly declared: readonly DeclaredPlugin[]
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

async function checkConfig (paths: Paths, { env }: Cli): Promise<CheckedConfig> {
  const { parts, snapshot, plugins } = await checkHome(paths, { ...env, SVC_HOME: undefined })
  // what is wrong with a slot or an upstream was so before, and keeps no gateway from starting
  const problems = parts.svc.value === null || snapshot === null
    ? parts.svc.diagnostics.map(({ file, path, message }) => `${file}: ${path === '' ? '' : `${path} `}${message}`) : []
  return {
    config: { ok: snapshot !== null, problems },
    declared: plugins,
    plugins: plugins.map(({ name, fault, trouble }) => ({ name, ok: fault === null, why: fault?.message ?? trouble }))
  }
}

function checkDatabase (original: string, copy: string): Promise<DatabaseVerdict> {
  return tryDatabase(original, copy, async path => (await openDatabase({ path })).close())
}

/** One after the other: each may be large, and its copy goes before the next one. */
async function checkPluginDatabases (
  plugins: readonly DeclaredPlugin[], { state }: Paths, copy: Paths
): Promise<readonly PluginDatabaseVerdict[]> {
  const found: PluginDatabaseVerdict[] = []
  for (const { name, plugin } of plugins) {
    for (const { path, upgrade } of plugin?.databases ?? []) {
      const place = (root: string): string => path({ own: join(root, 'plugin-state', name), state: root })
      const original = place(state)
      if (!await isThere(original)) continue
      found.push({ plugin: name, file: relative(state, original), ...await tryDatabase(original, place(copy.state), upgrade) })
      await rm(dirname(place(copy.state)), { recursive: true, force: true })
    }
  }
  return found
}

function print ({ out }: Cli, { version: own, config, database, databases, plugins }: Verdict): void {
  const mark = (ok: boolean): string => out.paint(ok ? 'green' : 'red', ok ? '✓' : '✗')
  out.line(`${mark(config.ok)} configuration${config.ok ? ` is read by release ${own}` : harmless(`: ${config.problems.join('; ')}`)}`)
  const [from, to] = [database.from ?? 0, database.to ?? 0]
  const moved = from === to ? `stays at version ${to}` : `is migrated from version ${from} to ${to}`
  out.line(`${mark(database.ok)} database ${database.ok ? moved : harmless(database.message ?? '')}`)
  for (const { plugin, ok, changed, message } of databases) {
    out.line(harmless(`${mark(ok)} database of ${plugin} ${ok ? changed ? 'is migrated' : 'stays as it is' : message ?? ''}`))
  }
  for (const { name, why } of plugins.filter(({ ok }) => !ok)) {
    out.line(harmless(`${mark(false)} plugin ${name}: ${why ?? 'it does not load'}`))
  }
  if (plugins.every(({ ok }) => ok)) out.line(`${mark(true)} ${plugins.length} plugins load`)
}

function isThere (path: string): Promise<boolean> {
  return access(path).then(() => true, () => false)
}
