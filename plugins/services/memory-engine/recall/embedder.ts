import type { Background, Core } from '../core.js'
import { DELETED_BANKS } from '../banks/deleted.js'
import { embed, embedIdentity, ModelError } from './model-calls.js'
import { vectorIndexOf } from './vector-index.js'
import { knownModel, modelNumber, putVector } from './vector-table.js'

const BATCH = 32
const MOST_TRIES = 5
/** A model that takes none of so many texts is not asked for the next ones at once. */
const ALL_REFUSED = 8
const FIRST_PAUSE_MS = 1000
const LONGEST_PAUSE_MS = 60_000

interface Pending {
  readonly seq: number
  readonly bank: number
  readonly text: string
  readonly embed_tries: number
}

/** Gives every valid memory a vector of the present model: new and edited ones first, then those of a former model. */
class Embedder {
  readonly #core: Core
  #isRunning = false
  #failures = 0
  /** Of the model that memories are refused by; null until there was one. */
  #identity: string | null = null
  #timer: NodeJS.Timeout | null = null

  constructor (core: Core) {
    this.#core = core
  }

  wake (): void {
    if (this.#isRunning || this.#timer !== null || this.#core.closing.aborted) return
    this.#isRunning = true
    void this.#run().finally(() => { this.#isRunning = false })
  }

  /** Another model may be there. */
  restart (): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#failures = 0
    this.wake()
  }

  async #run (): Promise<void> {
    const { closing } = this.#core
    while (!closing.aborted) {
      const identity = embedIdentity(this.#core)
      if (identity === null) return
      try {
        if (identity !== this.#identity) this.#forgetRefusals(identity)
        const pending = this.#next(knownModel(this.#core.store, identity))
        if (pending.length === 0) return
        if (await this.#embed(identity, pending)) this.#failures = 0
        else if (pending.length >= ALL_REFUSED) throw new Error('the model refuses all of them')
      } catch (error) {
        if (closing.aborted) return
        this.#core.log('info', 'memories wait for their vectors', { error: (error as Error).message, failures: this.#failures + 1 })
        return this.#pause()
      }
    }
  }

  /** Another model may take what the one before did not, and so may one that was seen to after a restart. */
  #forgetRefusals (identity: string): void {
    this.#core.store.run(`UPDATE memories SET embed_tries = 0
      WHERE embed_tries > 0 AND (vector_model IS NULL OR vector_model IN (SELECT seq FROM embed_models))`)
    this.#identity = identity
  }

  #next (model: number): readonly Pending[] {
    const { store } = this.#core
    const select = (where: string): readonly Pending[] => store.all<Pending>(
      `SELECT seq, bank, text, embed_tries FROM memories WHERE ${where} AND state = 'valid' AND bank NOT IN ${DELETED_BANKS} LIMIT ${BATCH}`,
      where.includes('?') ? [model] : [])
    const fresh = select(`vector_model IS NULL AND embed_tries < ${MOST_TRIES}`)
    if (fresh.length > 0) return fresh
    const older = select(`vector_model < ? AND embed_tries < ${MOST_TRIES}`)
    return older.length > 0 ? older : select(`vector_model > ? AND embed_tries < ${MOST_TRIES}`)
  }

  /** Whether the model took any of them. */
  async #embed (identity: string, pending: readonly Pending[]): Promise<boolean> {
    const { store, closing } = this.#core
    try {
      // a text that was refused is tried again by its beginning: models have bounds
      const texts = pending.map(({ text, embed_tries: tries }) => text.slice(0, Math.ceil(text.length / 2 ** tries)))
      const vectors = await embed(this.#core, texts, true, closing)
      if (embedIdentity(this.#core) !== identity) return true
      const model = modelNumber(store, identity, vectors[0]!.length)
      const index = vectorIndexOf(this.#core)
      store.transaction(() => {
        for (const [i, { seq, bank, text }] of pending.entries()) {
          // it may have been edited or deleted meanwhile
          if (store.get('SELECT 1 FROM memories WHERE seq = ? AND text = ?', [seq, text]) === undefined) continue
          putVector(store, bank, seq, model, vectors[i]!)
          index.added(bank, model, seq, vectors[i]!)
        }
      })
      return true
    } catch (error) {
      if (!(error instanceof ModelError) || !error.permanent) throw error
      if (embedIdentity(this.#core) !== identity) return true
      const [one, ...others] = pending
      if (others.length === 0) {
        store.run('UPDATE memories SET embed_tries = embed_tries + 1 WHERE seq = ?', [one!.seq])
        return false
      }
      let isTaken = false
      for (const each of pending) if (await this.#embed(identity, [each])) isTaken = true
      return isTaken
    }
  }

  #pause (): void {
    const ms = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.#failures++)
    this.#timer = setTimeout(() => {
      this.#timer = null
      this.wake()
    }, ms)
    this.#timer.unref()
  }
}

export const startEmbedder: Background = core => {
  const embedder = new Embedder(core)
  let seen = -1
  core.hooks.answered.push(() => {
    if (core.store.writes === seen) return
    seen = core.store.writes
    embedder.wake()
  })
  core.hooks.retained.push(() => embedder.wake())
  core.outside.onAbilities(() => embedder.restart())
  embedder.wake()
}
