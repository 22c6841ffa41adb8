import type { RouteSnapshot } from './resolve.js'

/** Names of models, by their lower case; null where two of them differ in nothing else. Names of slots are exact. */
export type Spellings = ReadonlyMap<string, string | null>

/** Pure. @param registered ids of the registry */
export function spellingsOf (snapshot: RouteSnapshot, registered: Iterable<string>): Spellings {
  const { byModel, byCatalogue, upstreamModels } = snapshot
  const spellings = new Map<string, string | null>()
  for (const map of [byModel, byCatalogue, upstreamModels]) add(spellings, map.keys())
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
