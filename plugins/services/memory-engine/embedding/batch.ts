import type { Core } from '../core.js'
import { embed, embedIdentity, ModelError } from '../recall/model-calls.js'
import { vectorIndexOf } from '../recall/vector-index.js'
import { modelNumber, putVector } from '../recall/vector-table.js'
import type { Waiting } from './waiting.js'

/** So many texts are one question to the model. */
export const BATCH = 32
/** A model that takes none of so many texts is not asked for the next ones at once. */
const ALL_REFUSED = 8
const FIRST_PAUSE_MS = 1000
const LONGEST_PAUSE_MS = 60_000

/** The pause after so many failures, from 1. Pure. */
export function pauseAfter (failures: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1))
}

/**
 * Gives memories of a bank their vectors, and says how many got one; each that the model refuses has one try less. Throws where
 * the model is away, or takes none of many.
 */
export async function embedBatch (
  core: Core, identity: string, bank: number, batch: readonly Waiting[], signal: AbortSignal
): Promise<number> {
  const taken = await embedSome(core, identity, bank, batch, signal)
  if (taken === 0 && batch.length >= ALL_REFUSED && embedIdentity(core) === identity) throw new Error('the model refuses all of them')
  return taken
}

async function embedSome (
  core: Core, identity: string, bank: number, batch: readonly Waiting[], signal: AbortSignal
): Promise<number> {
  const { store } = core
  try {
    // a text that was refused is tried again by its beginning: models have bounds
    const texts = batch.map(({ text, embed_tries: tries }) => text.slice(0, Math.ceil(text.length / 2 ** tries)))
    const vectors = await embed(core, texts, true, signal)
    signal.throwIfAborted()
    if (embedIdentity(core) !== identity) return 0
    const model = modelNumber(store, identity, vectors[0]!.length)
    const index = vectorIndexOf(core)
    return store.transaction(() => {
      let taken = 0
      for (const [i, { seq, text }] of batch.entries()) {
        // it may have been edited, deleted or moved meanwhile
        if (store.get('SELECT 1 FROM memories WHERE seq = ? AND text = ? AND bank = ?', [seq, text, bank]) === undefined) continue
        putVector(store, bank, seq, model, vectors[i]!)
        index.added(bank, model, seq, vectors[i]!)
        taken++
      }
      return taken
    })
  } catch (error) {
    if (!(error instanceof ModelError) || !error.permanent) throw error
    signal.throwIfAborted()
    if (embedIdentity(core) !== identity) return 0
    const [one, ...others] = batch
    if (others.length === 0) {
      store.run('UPDATE memories SET embed_tries = embed_tries + 1 WHERE seq = ?', [one!.seq])
      return 0
    }
    let taken = 0
    for (const each of batch) taken += await embedSome(core, identity, bank, [each], signal)
    return taken
  }
}
