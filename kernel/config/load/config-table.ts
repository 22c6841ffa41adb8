import {
  hardwareSchema, type ConfigSnapshot, type NamedProfile, type Paths
} from '../../contract/index.js'
import { loadJson, loadRows } from './load-file.js'
import type { LaidProviders } from '../parts/laid-providers.js'
import { configFiles, type ConfigParts } from '../parts/config-parts.js'
import { readProfiles, readProviders, readUpstreams } from '../schema/catalog-files.js'
import { layManifest, readHardware, readManifest } from '../schema/json-files.js'

/** Files that are read as a whole and stand in the snapshot; folders of files and svc.toml are read by modules of their own. */
type TableKey = 'profiles' | 'upstreams' | 'providers' | 'manifest' | 'hardware'

interface TablePart<K extends TableKey> {
  readonly file: string
  /** Keeps of the last good value what is broken. Never rejects for anything that the file holds. */
  readonly load: (paths: Paths, lastGood: ConfigParts[K]['value'] | null, providers: LaidProviders) => Promise<ConfigParts[K]>
  /** What it says, over what the gateway and the providers bring. Pure. */
  readonly lay: (value: ConfigParts[K]['value'], providers: LaidProviders) => ConfigSnapshot[K]
}

type Table = { readonly [K in TableKey]: TablePart<K> }

export const configTable: Table = {
  profiles: {
    file: configFiles.profiles,
    load: ({ etc }, lastGood, providers) =>
      loadRows(etc, configFiles.profiles, lastGood ?? [], (data, old) =>
        readProfiles(data, old, new Set(providers.profiles.keys()))),
    lay: layProfiles
  },
  upstreams: {
    file: configFiles.upstreams,
    load: ({ etc }, lastGood) => loadRows(etc, configFiles.upstreams, lastGood ?? [], readUpstreams),
    lay: value => value
  },
  providers: {
    file: configFiles.providers,
    load: ({ etc }, lastGood) => loadRows(etc, configFiles.providers, lastGood ?? [], readProviders),
    lay: value => value
  },
  manifest: {
    file: configFiles.manifest,
    load: ({ etc }, lastGood) => loadJson(etc, configFiles.manifest, lastGood, null, readManifest),
    lay: (value, providers) => layManifest(providers.images, value)
  },
  hardware: {
    file: configFiles.hardware,
    load: async ({ etc }, lastGood) => {
      const part = await loadJson(etc, configFiles.hardware, lastGood, hardwareSchema.parse({}), readHardware)
      return { ...part, value: part.value ?? hardwareSchema.parse({}) }
    },
    lay: value => value
  }
}

const keys = Object.keys(configTable) as readonly TableKey[]

/** One part of the table. */
export async function loadPart<K extends TableKey> (
  key: K, paths: Paths, previous: ConfigParts | null, providers: LaidProviders
): Promise<Pick<ConfigParts, K>> {
  const part: TablePart<K> = configTable[key]
  const lastGood: ConfigParts[K]['value'] | null = previous?.[key].value ?? null
  return { [key]: await part.load(paths, lastGood, providers) } as unknown as Pick<ConfigParts, K>
}

/** All parts of the table, or those whose files are named. */
export async function loadTable (
  paths: Paths, previous: ConfigParts | null, providers: LaidProviders, files: readonly string[] | null = null
): Promise<Partial<Pick<ConfigParts, TableKey>>> {
  const wanted = keys.filter(key => files === null || files.includes(configTable[key].file))
  const loaded = await Promise.all(wanted.map(key => loadPart(key, paths, previous, providers)))
  return Object.assign({}, ...loaded) as Partial<Pick<ConfigParts, TableKey>>
}

/** What the table says in a snapshot. Pure. */
export function layTable (parts: Pick<ConfigParts, TableKey>, providers: LaidProviders): Pick<ConfigSnapshot, TableKey> {
  const laid = <K extends TableKey>(key: K): ConfigSnapshot[K] => {
    const part: TablePart<K> = configTable[key]
    return part.lay(parts[key].value, providers)
  }
  return Object.fromEntries(keys.map(key => [key, laid(key)])) as unknown as Pick<ConfigSnapshot, TableKey>
}

/** Profiles of providers first, then the operator's own. */
function layProfiles (own: readonly NamedProfile[], { profiles }: LaidProviders): ReadonlyMap<string, NamedProfile> {
  const others = own.filter(({ name }) => !profiles.has(name))
  return new Map([...profiles, ...others.map(profile => [profile.name, profile] as const)])
}
