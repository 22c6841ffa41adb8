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

export interface Taken {
  readonly embedded: number
  /** Those that the model is not asked for any more. */
  readonly refused: number
}

const NONE: Taken = { embedded: 0, refused: 0 }

/**
 * Asks the model for the vectors of these memories and keeps them; keeps none once another model embeds. Throws why the model is
 * to be left alone for a while, or the signal's reason.
 */
export async function embedBatch (core: Core, identity: string, batch: readonly Waiting[], signal: AbortSignal): Promise<Taken> {
  const taken = await embedAll(core, identity, batch, signal)
  const isOther = embedIdentity(core) !== identity
  if (!isOther && taken.embedded === 0 && batch.length >= ALL_REFUSED) throw new Error('the model refuses all of them')
  return taken
}

async function embedAll (core: Core, identity: string, batch: readonly Waiting[], signal: AbortSignal): Promise<Taken> {
  const { store } = core
  try {
    // a text that was refused is tried again by its beginning: models have bounds
    const texts = batch.map(({ text, embed_tries: tries }) => text.slice(0, Math.ceil(text.length / 2 ** tries)))
    const vectors = await embed(core, texts, true, signal)
    signal.throwIfAborted()
    if (embedIdentity(core) !== identity) return NONE
    const model = modelNumber(store, identity, vectors[0]!.length)
    const index = vectorIndexOf(core)
    store.transaction(() => {
      for (const [i, { seq, bank, text }] of batch.entries()) {
        // it may have been edited or deleted meanwhile
        if (store.get('SELECT 1 FROM memories WHERE seq = ? AND text = ?', [seq, text]) === undefined) continue
        putVector(store, bank, seq, model, vectors[i]!)
        index.added(bank, model, seq, vectors[i]!)
      }
    })
    return { embedded: batch.length, refused: 0 }
  } catch (error) {
    if (!(error instanceof ModelError) || !error.permanent) throw error
    signal.throwIfAborted()
    if (embedIdentity(core) !== identity) return NONE
    const [one, ...others] = batch
    if (others.length === 0) {
      store.run('UPDATE memories SET embed_tries = embed_tries + 1 WHERE seq = ?', [one!.seq])
      return { embedded: 0, refused: one!.embed_tries + 1 === MOST_TRIES ? 1 : 0 }
    }
    let sum = NONE
    for (const each of batch) {
      const { embedded, refused } = await embedAll(core, identity, [each], signal)
      sum = { embedded: sum.embedded + embedded, refused: sum.refused + refused }
    }
    return sum
  }
}
