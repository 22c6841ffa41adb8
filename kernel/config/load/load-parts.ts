import { join } from 'node:path'
import type { ConfigFileDefinition, Paths, svcConfigSchema } from '../../contract/index.js'
import { loadTable } from './config-table.js'
import { noProviders, type LaidProviders } from '../parts/laid-providers.js'
import { located } from './load-file.js'
import { loadAgents } from './load-agents.js'
import { loadSlots } from './load-slots.js'
import { loadToolServers } from './load-tool-servers.js'
import { migrateConfig } from '../migrations/migrate.js'
import type { ConfigMigration } from '../migrations/index.js'
import { loadOwned } from './owned-files.js'
import { configFiles, type ConfigParts } from '../parts/config-parts.js'
import { checkShape } from '../check/shape-check.js'
import { readText } from '../files/read-file.js'
import { parseSecretsEnv } from './secrets-env.js'
import { readToml } from '../toml/toml-file.js'

export interface LoadOptions {
  readonly paths: Paths
  /** Of svc.toml. */
  readonly schema: typeof svcConfigSchema
  readonly migrations?: readonly ConfigMigration[]
  /** Whose facts files are read with: no other profile may have the names that they bring. Default: none. */
  readonly providers?: LaidProviders
  /** Files that plugins own. */
  readonly owned?: readonly ConfigFileDefinition[]
}

/**
 * Reads everything under the configuration root. What is broken keeps its value of `previous`, as small as the break is:
 * a row, a slot, a file. Never rejects for anything that the files hold.
 */
export async function loadParts (options: LoadOptions, previous: ConfigParts | null): Promise<ConfigParts> {
  const { paths, providers = noProviders, owned = [] } = options
  const [svc, slots, agents, toolServers, table, secrets, ofPlugins] = await Promise.all([
    loadSvc(options, previous?.svc.value ?? null),
    loadSlots(paths, previous, providers),
    loadAgents(paths, previous),
    loadToolServers(paths, previous),
    loadTable(paths, previous, providers),
    loadSecrets(paths, previous),
    loadOwned(paths, owned, previous, providers)
  ])
  return { svc, ...slots, ...agents, ...toolServers, ...table as TableParts, secrets, owned: ofPlugins }
}

type TableParts = Required<Awaited<ReturnType<typeof loadTable>>>

export async function loadSvc (options: LoadOptions, lastGood: ConfigParts['svc']['value']): Promise<ConfigParts['svc']> {
  const file = configFiles.svc
  const read = await readToml(join(options.paths.etc, file), file)
  if (read.status === 'bad') return { value: lastGood, diagnostics: [read.diagnostic] }
  const text = read.status === 'ok' ? read.text : ''
  const migrated = migrateConfig(read.status === 'ok' ? read.data : {}, options.migrations)
  if (migrated.status === 'refused') {
    const problem = { path: ['meta', 'schema_version'], message: migrated.message, unknown: false }
    return { value: lastGood, diagnostics: await located(file, text, [problem]) }
  }
  const checked = checkShape(options.schema, migrated.config, { audience: 'file' })
  return { value: checked.value ?? lastGood, diagnostics: await located(file, text, checked.problems) }
}

export async function loadSecrets (paths: Paths, previous: ConfigParts | null): Promise<ConfigParts['secrets']> {
  const file = configFiles.secrets
  const read = await readText(paths.secretsEnv, file)
  if (read.status === 'missing') return { value: new Map(), diagnostics: [] }
  if (read.status === 'bad') return { value: previous?.secrets.value ?? new Map(), diagnostics: [read.diagnostic] }
  const { values, problems } = parseSecretsEnv(read.text)
  return { value: values, diagnostics: problems.map(({ path, message, line }) => ({ file, path: path.join('.'), message, line })) }
}
