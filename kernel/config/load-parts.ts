import { join } from 'node:path'
import { hardwareSchema, svcConfigSchema, type Paths } from '../contract/index.js'
import { loadJson, loadRows, located } from './load-file.js'
import { loadAgents } from './load-agents.js'
import { loadSlots } from './load-slots.js'
import { loadToolServers } from './load-tool-servers.js'
import { migrateConfig } from './migrations/migrate.js'
import type { ConfigMigration } from './migrations/index.js'
import { configFiles, type ConfigParts } from './parts.js'
import { checkShape } from './shape-check.js'
import { readText } from './read-file.js'
import { parseSecretsEnv } from './secrets-env.js'
import { readCapabilities } from './schema/capabilities-file.js'
import { readProfiles, readProviders, readStacks, readUpstreams } from './schema/catalog-files.js'
import { readHardware, readManifest } from './schema/json-files.js'
import { seedStacks } from './stacks/seeds.js'
import { readToml } from './toml-file.js'

const stackSeeds = new Set(seedStacks.keys())

export interface LoadOptions {
  readonly paths: Paths
  readonly migrations?: readonly ConfigMigration[]
  /** Names of profiles that providers bring: nobody else's have them. */
  readonly profileSeeds?: ReadonlySet<string>
}

/**
 * Reads everything under the configuration root. What is broken keeps its value of `previous`, as small as the break is:
 * a row, a slot, a file. Never rejects for anything that the files hold.
 */
export async function loadParts (options: LoadOptions, previous: ConfigParts | null): Promise<ConfigParts> {
  const { etc } = options.paths
  const [
    svc, slots, agents, profiles, stacks, capabilities, upstreams, providers, toolServers, manifest, hardware, secrets
  ] = await Promise.all([
    loadSvc(options, previous?.svc.value ?? null),
    loadSlots(options.paths, previous),
    loadAgents(options.paths, previous),
    loadProfiles(options.paths, previous, options.profileSeeds),
    loadStacks(options.paths, previous),
    loadCapabilities(options.paths, previous),
    loadUpstreams(options.paths, previous),
    loadProviders(options.paths, previous),
    loadToolServers(options.paths, previous),
    loadJson(etc, configFiles.manifest, previous?.manifest.value ?? null, null, readManifest),
    loadJson(etc, configFiles.hardware, previous?.hardware.value ?? null, hardwareSchema.parse({}), readHardware),
    loadSecrets(options.paths, previous)
  ])
  return {
    svc,
    ...slots,
    ...agents,
    profiles,
    stacks,
    capabilities,
    upstreams,
    providers,
    ...toolServers,
    manifest,
    hardware: { ...hardware, value: hardware.value ?? hardwareSchema.parse({}) },
    secrets
  }
}

export function loadProfiles (
  { etc }: Paths, previous: ConfigParts | null, seeds: ReadonlySet<string> = new Set()
): Promise<ConfigParts['profiles']> {
  return loadRows(etc, configFiles.profiles, previous?.profiles.value ?? [], (data, old) => readProfiles(data, old, seeds))
}

export function loadStacks ({ etc }: Paths, previous: ConfigParts | null): Promise<ConfigParts['stacks']> {
  return loadRows(etc, configFiles.stacks, previous?.stacks.value ?? [], (data, old) => readStacks(data, old, stackSeeds))
}

export async function loadCapabilities ({ etc }: Paths, previous: ConfigParts | null): Promise<ConfigParts['capabilities']> {
  const file = configFiles.capabilities
  const lastGood = previous?.capabilities.value ?? {}
  const read = await readToml(join(etc, file), file)
  if (read.status === 'missing') return { value: {}, diagnostics: [] }
  if (read.status === 'bad') return { value: lastGood, diagnostics: [read.diagnostic] }
  const { selections, problems } = readCapabilities(read.data, lastGood)
  return { value: selections, diagnostics: await located(file, read.text, problems) }
}

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
  const checked = checkShape(svcConfigSchema, migrated.config, { audience: 'file' })
  return { value: checked.value ?? lastGood, diagnostics: await located(file, text, checked.problems) }
}

export function loadUpstreams (paths: Paths, previous: ConfigParts | null): Promise<ConfigParts['upstreams']> {
  return loadRows(paths.etc, configFiles.upstreams, previous?.upstreams.value ?? [], readUpstreams)
}

export function loadProviders (paths: Paths, previous: ConfigParts | null): Promise<ConfigParts['providers']> {
  return loadRows(paths.etc, configFiles.providers, previous?.providers.value ?? [], readProviders)
}

export async function loadSecrets (paths: Paths, previous: ConfigParts | null): Promise<ConfigParts['secrets']> {
  const file = configFiles.secrets
  const read = await readText(paths.secretsEnv, file)
  if (read.status === 'missing') return { value: new Map(), diagnostics: [] }
  if (read.status === 'bad') return { value: previous?.secrets.value ?? new Map(), diagnostics: [read.diagnostic] }
  const { values, problems } = parseSecretsEnv(read.text)
  return { value: values, diagnostics: problems.map(({ path, message, line }) => ({ file, path: path.join('.'), message, line })) }
}
