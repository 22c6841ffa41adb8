import { profileSchema, type NamedProfile } from '../../contract/index.js'
import { parseToml, type Table } from '../toml-file.js'
import { seedsToml } from './seeds-toml.js'

/** Built in and immutable: the code wins over a table of the same name in profiles.toml. */
export const seedProfiles: ReadonlyMap<string, NamedProfile> = readSeeds()

function readSeeds (): ReadonlyMap<string, NamedProfile> {
  const tables = parseToml(seedsToml).profile as Table
  return new Map(Object.entries(tables).map(([name, table]) =>
    [name, Object.freeze({ ...profileSchema.parse(table), name, seed: true })]))
}

/** Seeds first, then the operator's own. */
export function layProfiles (own: readonly NamedProfile[]): ReadonlyMap<string, NamedProfile> {
  const others = own.filter(profile => !seedProfiles.has(profile.name))
  return new Map([...seedProfiles, ...others.map(profile => [profile.name, profile] as const)])
}
