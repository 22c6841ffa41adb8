import type { Core } from '../core.js'
import { embed, embedIdentity, ModelError } from '../recall/model-calls.js'
import { vectorIndexOf } from '../recall/vector-index.js'
import { modelNumber, putVector } from '../recall/vector-table.js'
import { MOST_TRIES, type Waiting } from './waiting.js'

/** Texts that a model is asked for at once. */
export const BATCH = 32
/** A model that takes none of so many texts is not asked for the next ones at once. */
const ALL_REFUSED = 8
const FIRST_PAUSE_MS = 1000
const LONGEST_PAUSE_MS = 60_000

/** The pause behind so many failures in a row. Pure. */
export function pauseMs (failures: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1))
}

/** What has come of memories so far. */
export interface Taken {
  embedded: number
  /** Those that the model is not asked for any more. */
  refused: number
}

/**
 * Asks the model for the vectors of these memories and keeps them, counted in `taken` as they are; keeps none once another model
 * embeds. Throws why the model is to be left alone for a while, or the signal's reason.
 */
export async function embedBatch (
  core: Core, identity: string, batch: readonly Waiting[], signal: AbortSignal, taken: Taken = { embedded: 0, refused: 0 }
): Promise<void> {
  const before = taken.embedded
  await embedAll(core, identity, batch, signal, taken)
  const isOther = embedIdentity(core) !== identity
  if (!isOther && taken.embedded === before && batch.length >= ALL_REFUSED) throw new Error('the model refuses all of them')
}

async function embedAll (
  core: Core, identity: string, batch: readonly Waiting[], signal: AbortSignal, taken: Taken
): Promise<void> {
  const { store } = core
  try {
    // a text that was refused is tried again by its beginning: models have bounds
    const texts = batch.map(({ text, embed_tries: tries }) => text.slice(0, Math.ceil(text.length / 2 ** tries)))
    const vectors = await embed(core, texts, true, signal)
    signal.throwIfAborted()
    if (embedIdentity(core) !== identity) return
    const model = modelNumber(store, identity, vectors[0]!.length)
    const index = vectorIndexOf(core)
    store.transaction(() => {
      for (const [i, { seq, bank, text }] of batch.entries()) {
        // it may have been edited, deleted or embedded meanwhile
        if (store.get('SELECT 1 FROM memories WHERE seq = ? AND text = ? AND vector_model IS NOT ?', [seq, text, model]) === undefined) continue
        putVector(store, bank, seq, model, vectors[i]!)
        index.added(bank, model, seq, vectors[i]!)
      }
    })
    taken.embedded += batch.length
  } catch (error) {
    if (!(error instanceof ModelError) || !error.permanent) throw error
    signal.throwIfAborted()
    if (embedIdentity(core) !== identity) return
    const [one, ...others] = batch
    if (others.length === 0) {
      store.run('UPDATE memories SET embed_tries = embed_tries + 1 WHERE seq = ?', [one!.seq])
      if (one!.embed_tries + 1 === MOST_TRIES) taken.refused++
      return
    }
    for (const each of batch) await embedAll(core, identity, [each], signal, taken)
  }
}
