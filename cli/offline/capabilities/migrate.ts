import type { Command } from 'commander'
import type { z } from 'zod'
import type { Logger, Paths } from '../../../kernel/contract/index.js'
import type { WithLock } from '../../../kernel/config/locker.js'
import { createConfigService } from '../../../kernel/config/store.js'
import { createWithLock } from '../../../kernel/state/file-lock.js'
import { createSystemClock } from '../../../kernel/state/system-clock.js'
import { settingsTables } from '../../../plugins/index.js'
import { isChange, migrateSelections } from '../../../plugins/api/capabilities/migrate.js'
import { migrationSchema } from '../../../plugins/api/capabilities/schemas.js'
import { capabilitiesFile } from '../../../plugins/services/capabilities/capabilities-file.js'
import type { Cli } from '../../cli.js'
import type { ApiClient } from '../../client/client.js'
import { CliFailure } from '../../failure.js'
import { askedBy, targetOf } from '../../client/target.js'
import { homeOf, requireHome } from '../home/home-of.js'
import { homeProviders } from '../home-providers.js'
import { offlineSource } from './offline-source.js'

export interface MigrateOptions {
  readonly dryRun?: true
  readonly json?: true
}

type Migration = z.output<typeof migrationSchema>

/** The gateway that is meant does it. Where none runs on the home it is done on the files. */
export async function migrateCapabilities (cli: Cli, command: Command, options: MigrateOptions): Promise<void> {
  const client = await runningGateway(cli, command)
  const body = { dry_run: options.dryRun === true }
  const migration = client === null
    ? await migrateFiles(cli, await homeOf(cli, command), body.dry_run)
    : await client.call({ method: 'POST', path: '/api/capabilities/migrate', body }, migrationSchema)
  if (options.json === true) return cli.out.json(migration)
  printMigration(cli, migration)
}

async function runningGateway (cli: Cli, command: Command): Promise<ApiClient | null> {
  const client = cli.gateway(command)
  if (client === null || targetOf(askedBy(command, cli.env)).kind === 'gateway') return client
  const answers = await client.raw({ path: '/api/status', timeoutMs: 1000 }).then(() => true, () => false)
  cli.signal.throwIfAborted()
  return answers ? client : null
}

async function migrateFiles (cli: Cli, paths: Paths, dryRun: boolean): Promise<Migration> {
  if (!dryRun) await requireHome(paths)
  // what changes nothing leaves no lock, and no folder for one
  const withLock: WithLock = dryRun ? async (_path, work) => await work() : createWithLock({ text: 'svc capabilities migrate' })
  const clock = createSystemClock()
  const providers = await homeProviders(paths)
  const config = await createConfigService({
    paths, env: cli.env, log: quietLog, clock, withLock, providers, tables: settingsTables, owned: [capabilitiesFile]
  })
  // a choice that cannot be read is not there for the rules, and writing the file again would be its end
  const broken = config.snapshot.diagnostics.filter(({ file }) => file === capabilitiesFile.file)
  if (broken.length > 0) {
    throw new CliFailure(`${capabilitiesFile.file} is not valid; fix it first`, {
      hints: broken.map(({ path, message }) => `  ${path} ${message}`)
    })
  }
  const source = await offlineSource({ config, clock, log: quietLog, withLock, env: cli.env })
  const rows = await config.change(draft => migrateSelections(draft, source), { dryRun })
  return { dry_run: dryRun, changed: rows.filter(isChange).length, rows: [...rows] }
}

function printMigration ({ out }: Cli, { rows, changed, dry_run: isDry }: Migration): void {
  if (changed === 0) return out.line('Nothing to do: every choice is valid.')
  out.table([
    { title: 'SLOT', cell: ({ slot }) => slot },
    { title: 'CHILD', cell: ({ child }) => child },
    { title: 'MODEL', cell: ({ model }) => model ?? '-', flexible: true },
    { title: 'BEFORE', cell: ({ before }) => before, flexible: true },
    { title: 'AFTER', cell: ({ after }) => after, flexible: true },
    { title: 'REASON', cell: ({ reason }) => reason, flexible: true }
  ], rows.filter(isChange))
  out.line(isDry ? 'Nothing was changed. Run it without --dry-run to apply.' : `Changed: ${changed}. Slots follow when their capability changes next.`)
}

/** What is wrong in other files is for `svc config validate`. */
const quiet = (): void => {}
const quietLog: Logger = { debug: quiet, info: quiet, warn: quiet, error: quiet }
