import type { Core } from '../core.js'
import { PermanentFailure } from '../operations/operation.js'
import type { Run, Work } from '../operations/operation-queue.js'
import { embedIdentity } from '../recall/model-calls.js'
import { findBank } from '../store/bank-table.js'
import { BATCH, embedBatch, pauseMs, type Taken } from './batch.js'
import { modelCome } from './model-come.js'
import { WaitingMemories } from './waiting.js'

/** Embeds until no memory of the bank waits, with whatever model embeds then. It waits as long as the model is away. */
export function embeddingWork (core: Core): Work {
  return async ({ id, bankId, progress }, run) => {
    const bank = findBank(core.store, bankId)?.seq
    // what a process before has done of it
    const refused = progress?.detail?.refused ?? 0
    const embedding = new Embedding(core, run, { embedded: (progress?.processed ?? 0) - refused, refused })
    for (let failures = 0; ;) {
      run.signal.throwIfAborted()
      const model = embedIdentity(core)
      if (model === null) throw new PermanentFailure('nothing embeds any more')
      // deleted, and perhaps made anew
      if (bank === undefined || findBank(core.store, bankId)?.seq !== bank) throw new PermanentFailure(`Bank '${bankId}' not found`)
      let isOver = false
      try {
        isOver = await embedding.next(bankId, model)
        failures = 0
      } catch (error) {
        run.signal.throwIfAborted()
        core.log('info', 'memories wait for their vectors', { operation: id, error: (error as Error).message, failures: ++failures })
        embedding.say('waiting_for_model')
        if (await pause(core, pauseMs(failures), run.signal)) failures = 0
      }
      if (isOver) return embedding.commit(model)
    }
  }
}

class Embedding {
  readonly #core: Core
  readonly #run: Run
  #taken: Taken
  #total = 0

  constructor (core: Core, run: Run, before: Taken) {
    this.#core = core
    this.#run = run
    this.#taken = before
  }

  get #done (): number { return this.#taken.embedded + this.#taken.refused }

  /** Takes the next ones. True if there was none. */
  async next (bankId: string, model: string): Promise<boolean> {
    await modelCome(this.#core, model)
    const bank = findBank(this.#core.store, bankId)
    if (bank === undefined) return false
    const waiting = new WaitingMemories(this.#core.store, model)
    const batch = waiting.of(bank, BATCH)
    if (batch.length === 0) return true
    // new ones may have come
    if (this.#done + batch.length > this.#total) this.#total = this.#done + waiting.count(bank)
    this.say('embedding')
    const { embedded, refused } = await embedBatch(this.#core, model, batch, this.#run.signal)
    this.#taken = { embedded: this.#taken.embedded + embedded, refused: this.#taken.refused + refused }
    return false
  }

  say (stage: string): void {
    const { refused } = this.#taken
    this.#run.progress(stage, this.#done, Math.max(this.#total, this.#done), refused === 0 ? undefined : { refused })
  }

  commit (model: string): void {
    this.#run.commit(() => {
      this.#total = this.#done
      this.say('embedding')
      return { ...this.#taken, model }
    })
  }
}

/** Ends before its time, and with true, when another model may be there. */
function pause ({ outside }: Core, ms: number, signal: AbortSignal): Promise<boolean> {
  return new Promise(resolve => {
    const end = (isOther: boolean): void => {
      clearTimeout(timer)
      stop()
      signal.removeEventListener('abort', abort)
      resolve(isOther)
    }
    const abort = (): void => end(false)
    const timer = setTimeout(() => end(false), ms).unref()
    const stop = outside.onAbilities(() => end(true))
    signal.addEventListener('abort', abort)
  })
}
