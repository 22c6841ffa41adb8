import { linkedAbort } from 'svc-gateway/plugin'
import type { Core } from '../core.js'
import { PermanentFailure } from '../operations/operation.js'
import type { Run, Work } from '../operations/operation-queue.js'
import { embedIdentity } from '../recall/model-calls.js'
import { findBank } from '../store/bank-table.js'
import { BATCH, embedBatch, pauseMs, type Taken } from './batch.js'
import { modelCome } from './model-come.js'
import { WaitingMemories } from './waiting.js'

/** Embeds until no memory of the bank waits, with whatever model embeds then. It waits while none does or the model is away. */
export function embeddingWork (core: Core): Work {
  return async ({ id, bankId, progress }, run) => {
    const bank = findBank(core.store, bankId)?.seq
    // what a process before has done of it; what was refused is tried again
    const embedded = (progress?.processed ?? 0) - (progress?.detail?.refused ?? 0)
    const embedding = new Embedding(core, run, embedded, progress?.total ?? 0)
    for (let failures = 0; ;) {
      run.signal.throwIfAborted()
      // deleted, and perhaps made anew
      if (bank === undefined || findBank(core.store, bankId)?.seq !== bank) throw new PermanentFailure(`Bank '${bankId}' not found`)
      const model = embedIdentity(core)
      if (model === null) {
        embedding.say('waiting_for_model')
        await otherModel(core, null, run.signal)
        failures = 0
        continue
      }
      let isOver = false
      try {
        isOver = await embedding.next(bankId, model)
        failures = 0
      } catch (error) {
        run.signal.throwIfAborted()
        core.log('info', 'memories wait for their vectors', { operation: id, error: (error as Error).message, failures: ++failures })
        embedding.say('waiting_for_model')
        if (await otherModel(core, pauseMs(failures), run.signal)) failures = 0
      }
      if (isOver) return embedding.commit(model)
    }
  }
}

class Embedding {
  readonly #core: Core
  readonly #run: Run
  #taken: Taken
  #total: number
  #model: string | null = null

  constructor (core: Core, run: Run, embedded: number, total: number) {
    this.#core = core
    this.#run = run
    this.#taken = { embedded, refused: 0 }
    this.#total = total
  }

  get #done (): number { return this.#taken.embedded + this.#taken.refused }

  /** Takes the next ones. True if there was none. */
  async next (bankId: string, model: string): Promise<boolean> {
    // what a former model took counts for nothing
    if (this.#model !== null && this.#model !== model) [this.#taken, this.#total] = [{ embedded: 0, refused: 0 }, 0]
    this.#model = model
    await modelCome(this.#core, model)
    const bank = findBank(this.#core.store, bankId)
    if (bank === undefined) return false
    const waiting = new WaitingMemories(this.#core.store, model)
    const batch = waiting.of(bank, BATCH)
    if (batch.length === 0) return true
    // new ones may have come
    if (this.#done + batch.length > this.#total) this.#total = this.#done + waiting.count(bank)
    this.say('embedding')
    await whileIts(this.#core, model, this.#run.signal, signal => embedBatch(this.#core, model, batch, signal, this.#taken))
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

/** Does `work` with a signal that aborts with the one that is given, and when another model embeds: a former one may hang. */
async function whileIts (
  core: Core, model: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<void>
): Promise<void> {
  const { controller, dispose } = linkedAbort(signal)
  const stop = core.outside.onAbilities(() => { if (embedIdentity(core) !== model) controller.abort(new Error('another model embeds')) })
  try {
    await work(controller.signal)
  } catch (error) {
    signal.throwIfAborted()
    if (!controller.signal.aborted) throw error
  } finally {
    stop()
    dispose()
  }
}

/** True as soon as another model may be there, false where `ms` have passed (null: it has no end) or the signal aborts. */
function otherModel (core: Core, ms: number | null, signal: AbortSignal): Promise<boolean> {
  return new Promise(resolve => {
    const end = (isOther: boolean): void => {
      if (timer !== null) clearTimeout(timer)
      stop()
      signal.removeEventListener('abort', abort)
      resolve(isOther)
    }
    const abort = (): void => end(false)
    const timer = ms === null ? null : setTimeout(() => end(false), ms).unref()
    const stop = core.outside.onAbilities(() => end(true))
    signal.addEventListener('abort', abort)
  })
}
