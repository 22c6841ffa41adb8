import type { RouteSnapshot } from './resolve.js'

/** Names that can be asked for, by their lower case; null where two of them differ in nothing else. */
export type Spellings = ReadonlyMap<string, string | null>

/** Pure. @param registered ids of the registry */
export function spellingsOf (snapshot: RouteSnapshot, registered: Iterable<string>): Spellings {
  const { slots, aliases, clientAliases, byModel, byCatalogue, upstreamModels } = snapshot
  const spellings = new Map<string, string | null>()
  const maps = [slots, aliases, clientAliases, byModel, byCatalogue, upstreamModels]
  for (const names of maps.map(map => map.keys())) add(spellings, names)
  return add(spellings, registered)
}

function add (spellings: Map<string, string | null>, names: Iterable<string>): Spellings {
  for (const name of names) {
    const folded = name.toLowerCase()
    const known = spellings.get(folded)
    if (known !== name) spellings.set(folded, known === undefined ? name : null)
  }
  return spellings
}
