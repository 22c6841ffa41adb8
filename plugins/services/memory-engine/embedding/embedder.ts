import type { Background, Core } from '../core.js'
import type { OperationType } from '../operations/operation.js'
import { operationsOf } from '../operations/operations.js'
import { embedIdentity } from '../recall/model-calls.js'
import type { BankRow } from '../store/bank-table.js'
import { BATCH, embedBatch, pauseMs } from './batch.js'
import { leaveOut, takeIn } from './cancelled.js'
import { modelCome } from './model-come.js'
import { WaitingMemories, type Waiting } from './waiting.js'

/** What embeds the memories of its bank itself, and what brings more of them than one operation is to be made for. */
const LEFT_TO: readonly OperationType[] = ['embedding', 'import_documents', 'import_bank']

/** Gives valid memories a vector of the present model where a few wait for it, and makes an operation where many do. */
class Embedder {
  readonly #core: Core
  #isRunning = false
  #failures = 0
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
        await modelCome(this.#core, identity)
        const batch = this.#next(identity)
        if (batch.length === 0) return
        await embedBatch(this.#core, identity, batch, closing)
        this.#failures = 0
      } catch (error) {
        if (closing.aborted) return
        this.#core.log('info', 'memories wait for their vectors', { error: (error as Error).message, failures: this.#failures + 1 })
        return this.#pause()
      }
    }
  }

  /** Of all banks in which few wait. */
  #next (identity: string): readonly Waiting[] {
    const { store } = this.#core
    const operations = operationsOf(this.#core)
    const waiting = new WaitingMemories(store, identity)
    const few: Waiting[] = []
    for (const seq of waiting.banks()) {
      const bank = store.get<BankRow>('SELECT * FROM banks WHERE seq = ?', [seq])!
      const { bank_id: bankId } = bank
      // one with a slash was deleted, or is not there yet
      if (bankId.startsWith('/') || operations.table.isOpen(bankId, LEFT_TO)) continue
      const own = waiting.of(bank, BATCH + 1)
      if (own.length > BATCH) operations.submit({ bankId, type: 'embedding', result: { model: identity } })
      else few.push(...own.slice(0, BATCH - few.length))
      if (few.length === BATCH) break
    }
    return few
  }

  #pause (): void {
    this.#timer = setTimeout(() => {
      this.#timer = null
      this.wake()
    }, pauseMs(++this.#failures))
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
  operations.ended.push(({ type }) => { if (LEFT_TO.includes(type)) embedder.wake() })
  operations.cancelling.push(operation => { if (operation.type === 'embedding') leaveOut(core, operation) })
  operations.retrying.push(operation => { if (operation.type === 'embedding') takeIn(core, operation) })
  core.outside.onAbilities(() => embedder.restart())
  embedder.wake()
}
