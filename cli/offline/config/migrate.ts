import { join } from 'node:path'
import { writeFileAtomic } from '../../../kernel/config/files/atomic-file.js'
import { configMigrations, type ConfigMigration } from '../../../kernel/config/migrations/index.js'
import { migrateConfig } from '../../../kernel/config/migrations/migrate.js'
import { configFiles } from '../../../kernel/config/parts/config-parts.js'
import { patchSvcFile } from '../../../kernel/config/write/svc-writer.js'
import { readToml } from '../../../kernel/config/toml/toml-file.js'
import type { Paths } from '../../../kernel/contract/index.js'
import type { Cli } from '../../cli.js'
import { CliFailure } from '../../failure.js'
import { ConfigText } from './config-text.js'
import { svcSchema } from '../svc-schema.js'

/** Brings svc.toml to the present version and keeps the old text beside it. `steps` are the release's. */
export async function migrateSvcToml (
  cli: Cli, paths: Paths, steps: readonly ConfigMigration[] = configMigrations
): Promise<void> {
  const { out } = cli
  const file = new ConfigText(paths)
  const read = async (): ReturnType<typeof readToml> => await readToml(join(file.paths.etc, configFiles.svc), configFiles.svc)
  // nothing is made where nothing has to be done, no lock and no folder either
  if ((await read()).status === 'missing') return out.line(`There is no ${file.path}, so there is nothing to migrate.`)
  await file.exclusively('svc config migrate', async () => {
    const now = await read()
    if (now.status === 'missing') return out.line(`There is no ${file.path}, so there is nothing to migrate.`)
    if (now.status === 'bad') throw new CliFailure(`${file.path} ${now.diagnostic.message}`)
    const migrated = migrateConfig(now.data, steps)
    if (migrated.status === 'refused') throw new CliFailure(`meta.schema_version of ${file.path} ${migrated.message}`)
    const { from, to } = migrated
    if (from === to) return out.line(`${file.path} has version ${to}, which is the latest.`)
    const backup = `${file.path}.v${from}.bak`
    await writeFileAtomic(backup, now.text)
    const warn = (_fields: object | string, message = ''): void => cli.out.note(`Warning: svc.toml: ${message}`)
    const quiet = (): void => {}
    const log = { debug: quiet, info: quiet, warn, error: quiet }
    await patchSvcFile({ paths: file.paths, log, schema: svcSchema }, {}, steps)
    out.line(`${file.path} is migrated from version ${from} to ${to}. The old file is ${backup}.`)
  })
}
