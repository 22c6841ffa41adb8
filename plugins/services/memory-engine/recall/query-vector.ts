import type { Core } from '../core.js'
import { embed, embedIdentity } from './model-calls.js'
import { PATIENCE, patiently } from './patience.js'
import { knownModel, type Vector } from './vector-table.js'

export const NO_VECTORS = 'no memory has a vector of this model yet'
const queries = new WeakMap<Core, Map<string, Vector>>()
const KEPT_QUERIES = 200

/** Null with the reason why there is none. */
interface QueryVector {
  readonly vector: Vector | null
  readonly why: string | null
}

/** The vector of a question, which is kept for when it is asked again. Rejects only when the client leaves. */
export async function queryVector (core: Core, query: string, signal: AbortSignal): Promise<QueryVector> {
  const identity = embedIdentity(core)
  if (identity === null) return { vector: null, why: core.outside.abilities.embed.why }
  let kept = queries.get(core)
  if (kept === undefined) queries.set(core, kept = new Map())
  const key = `${identity}\n${query}`
  const known = kept.get(key)
  if (known !== undefined) return { vector: known, why: null }
  // with no vectors to compare with there is no reason to wait for another
  if (knownModel(core.store, identity) === -1) return { vector: null, why: NO_VECTORS }
  const asked = await patiently(core, 'embed', core.outside.abilities.patience?.embedMs ?? PATIENCE.embedMs, signal,
    bound => embed(core, [query], false, bound))
  if ('why' in asked) return { vector: null, why: asked.why }
  const vector = asked.result[0]!
  if (kept.size >= KEPT_QUERIES) kept.delete(kept.keys().next().value!)
  kept.set(key, vector)
  return { vector, why: null }
}
