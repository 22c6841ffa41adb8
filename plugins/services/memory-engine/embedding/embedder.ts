import type { Background, Core } from '../core.js'
import type { Operation } from '../operations/operation.js'
import { operationsOf } from '../operations/operations.js'
import { embedIdentity } from '../recall/model-calls.js'
import { knownModel } from '../recall/vector-table.js'
import { BATCH, embedBatch, pauseAfter } from './batch.js'
import { banksWith, cancelWaiting, markCancelled, moreWait, othersThan, resumeRefused, waitingIn, type Waiting } from './waiting.js'

interface Next {
  readonly bank: number
  readonly batch: readonly Waiting[]
}

/**
 * Gives every valid memory a vector of the present model: new and edited ones first, then those of a former model. Where many of
 * a bank wait, that is an operation of it; a few are embedded right away, without one.
 */
class Embedder {
  readonly #core: Core
  #isRunning = false
  #isWanted = false
  #failures = 0
  /** Of the model that memories are refused by; null until there was one. */
  #identity: string | null = null
  #timer: NodeJS.Timeout | null = null

  constructor (core: Core) {
    this.#core = core
  }

  wake (): void {
    if (this.#timer !== null || this.#core.closing.aborted) return
    this.#isWanted = true
    if (this.#isRunning) return
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
    const { core, core: { closing, store } } = { core: this.#core }
    while (this.#isWanted && !closing.aborted) {
      const identity = embedIdentity(core)
      if (identity === null) return
      try {
        if (identity !== this.#identity) await resumeRefused(store, identity, closing)
        this.#identity = identity
        await markCancelled(store, identity, knownModel(store, identity), closing)
        // what comes from here on is seen by this look, or asks for another
        this.#isWanted = false
        const next = this.#next(knownModel(store, identity))
        if (next === null) continue
        this.#isWanted = true
        await embedBatch(core, identity, next.bank, next.batch, closing)
        this.#failures = 0
      } catch (error) {
        if (closing.aborted) return
        core.log('info', 'memories wait for their vectors', { error: (error as Error).message, failures: this.#failures + 1 })
        return this.#pause()
      }
    }
  }

  /** A few memories of a bank. Banks where more wait get an operation, and those that have one are left to it. */
  #next (model: number): Next | null {
    const { store } = this.#core
    const busy = new Set(store.all<{ seq: number }>(`SELECT b.seq FROM operations o JOIN banks b ON b.bank_id = o.bank_id
      WHERE o.status IN ('pending', 'processing') AND o.type = 'embedding'`).map(({ seq }) => seq))
    for (const other of othersThan(store, model)) {
      for (const bank of banksWith(store, other)) {
        if (busy.has(bank)) continue
        if (moreWait(store, bank, model, BATCH)) {
          const { bank_id: bankId } = store.get<{ bank_id: string }>('SELECT bank_id FROM banks WHERE seq = ?', [bank])!
          operationsOf(this.#core).submit({ bankId, type: 'embedding', payload: {} })
          busy.add(bank)
          continue
        }
        const batch = waitingIn(store, bank, model, BATCH)
        if (batch.length > 0) return { bank, batch }
      }
    }
    return null
  }

  #pause (): void {
    this.#timer = setTimeout(() => {
      this.#timer = null
      this.wake()
    }, pauseAfter(++this.#failures))
    this.#timer.unref()
  }
}

export const startEmbedder: Background = core => {
  const embedder = new Embedder(core)
  const operations = operationsOf(core)
  let seen = -1
  core.hooks.answered.push(() => {
    if (core.store.writes === seen) return
    seen = core.store.writes
    embedder.wake()
  })
  core.hooks.retained.push(() => embedder.wake())
  core.outside.onAbilities(() => embedder.restart())
  operations.cancelling.push(({ type, bankId }) => {
    const identity = embedIdentity(core)
    if (type === 'embedding' && identity !== null) cancelWaiting(core.store, bankId, identity)
  })
  operations.ended.push(({ type }: Operation) => { if (type === 'embedding') embedder.wake() })
  embedder.wake()
}
