import type { z } from 'zod'
import type { Logger } from '../../../kernel/contract/index.js'
import { createConfigService } from '../../../kernel/config/store.js'
import { resolvePaths } from '../../../kernel/config/paths.js'
import { createWithLock } from '../../../kernel/state/file-lock.js'
import { createSystemClock } from '../../../kernel/state/system-clock.js'
import { isChange, migrateSelections } from '../../../plugins/api/capabilities/migrate.js'
import { migrationSchema } from '../../../plugins/api/capabilities/schemas.js'
import type { Cli } from '../../cli.js'
import type { ApiClient } from '../../client.js'
import { CliFailure } from '../../failure.js'
import { OfflineHome } from '../../plugins/offline-home.js'
import { offlineSource } from './offline-source.js'

export interface MigrateOptions {
  readonly dryRun?: true
  readonly json?: true
  readonly home?: string
}

type Migration = z.output<typeof migrationSchema>

/**
 * SPEC.md `svc capabilities migrate` (management 29.5). `gateway` is asked when it was named; else the one of the home, or,
 * where no home was named, `gateway` if it answers. Where none runs it is done on the files.
 */
export async function migrateCapabilities (
  cli: Cli, options: MigrateOptions, gateway: ApiClient, isNamed: boolean
): Promise<void> {
  const client = isNamed ? gateway : await runningGateway(cli, options.home, gateway)
  const body = { dry_run: options.dryRun === true }
  const migration = client === null
    ? await migrateFiles(cli, options.home, body.dry_run)
    : await client.call({ method: 'POST', path: '/api/capabilities/migrate', body }, migrationSchema)
  if (options.json === true) return cli.out.json(migration)
  printMigration(cli, migration)
}

async function runningGateway (cli: Cli, homeFolder: string | undefined, fallback: ApiClient): Promise<ApiClient | null> {
  const home = new OfflineHome(cli, homeFolder)
  const url = await home.runningGateway()
  if (url !== null) return cli.clientAt(url)
  if (home.paths.home !== null) return null
  const answers = await fallback.raw({ path: '/api/status', timeoutMs: 1000 }).then(() => true, () => false)
  cli.signal.throwIfAborted()
  return answers ? fallback : null
}

async function migrateFiles (cli: Cli, homeFolder: string | undefined, dryRun: boolean): Promise<Migration> {
  const paths = resolvePaths(cli.env, homeFolder === undefined ? {} : { home: homeFolder })
  const withLock = createWithLock({ text: 'svc capabilities migrate' })
  const clock = createSystemClock()
  const config = await createConfigService({ paths, env: cli.env, log: quietLog, clock, withLock })
  // a choice that cannot be read is not there for the rules, and writing the file again would be its end
  const broken = config.snapshot.diagnostics.filter(({ file }) => file === 'capabilities.toml')
  if (broken.length > 0) {
    throw new CliFailure('capabilities.toml is not valid; repair it first', { hints: broken.map(({ path, message }) => `  ${path} ${message}`) })
  }
  const source = await offlineSource({ config, clock, log: quietLog, withLock, env: cli.env })
  const rows = await config.change(draft => migrateSelections(draft, source), { dryRun })
  return { dry_run: dryRun, changed: rows.filter(isChange).length, rows: [...rows] }
}

function printMigration ({ out }: Cli, { rows, changed, dry_run: isDry }: Migration): void {
  if (changed === 0) return out.line('Nothing to do: every choice is legal.')
  out.table([
    { title: 'SLOT', cell: ({ slot }) => slot },
    { title: 'CHILD', cell: ({ child }) => child },
    { title: 'MODEL', cell: ({ model }) => model ?? '-', flexible: true },
    { title: 'BEFORE', cell: ({ before }) => before, flexible: true },
    { title: 'AFTER', cell: ({ after }) => after, flexible: true },
    { title: 'REASON', cell: ({ reason }) => reason, flexible: true }
  ], rows.filter(isChange))
  out.line(isDry ? 'Nothing was changed. Without --dry-run it is.' : `Changed: ${changed}. Slots follow with the next change of their capability.`)
}

/** What is wrong in other files is for `svc config validate`. */
const quiet = (): void => {}
const quietLog: Logger = { debug: quiet, info: quiet, warn: quiet, error: quiet }
