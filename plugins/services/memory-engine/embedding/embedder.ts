import type { Background, Core } from '../core.js'
import { operationsOf } from '../operations/operations.js'
import { embedIdentity } from '../recall/model-calls.js'
import { findBank, type BankRow } from '../store/bank-table.js'
import { turn, Turns } from '../store/turn.js'
import { BATCH, embedBatch, pauseMs } from './batch.js'
import { leaveOut, takeIn } from './cancelled.js'
import { modelCome } from './model-come.js'
import { WaitingMemories, type Waiting } from './waiting.js'

/** Between two looks at the banks that were written to while the model is waited for. */
const LOOK_AGAIN_MS = 1000

/** Gives valid memories a vector of the present model where a few wait for it, and makes an operation where many do. */
class Embedder {
  readonly #core: Core
  #isRunning = false
  /** Woken while it looks at the banks: some may wait in those that it has passed. */
  #isWoken = false
  #failures = 0
  #pauseTimer: NodeJS.Timeout | null = null
  #lookTimer: NodeJS.Timeout | null = null
  #written = new Set<string>()
  /** Banks whose operation waits, in their turn, until one is written to; and the one that was helped last. */
  #queued: readonly number[] = []
  #helped = 0

  constructor (core: Core) {
    this.#core = core
  }

  /** @param bankId the bank in which some may wait now */
  wake (bankId: string | null = null): void {
    if (this.#core.closing.aborted) return
    this.#isWoken = true
    if (this.#isRunning || this.#pauseTimer !== null) {
      if (bankId !== null) this.#lookSoon(bankId)
      return
    }
    this.#isRunning = true
    void this.#run()
  }

  /** Another model may be there. */
  restart (): void {
    if (this.#pauseTimer !== null) clearTimeout(this.#pauseTimer)
    this.#pauseTimer = null
    this.#failures = 0
    this.wake()
  }

  async #run (): Promise<void> {
    try {
      while (await this.#step()) { /* some may be left */ }
    } finally {
      this.#isRunning = false
    }
  }

  /** False where none waits, or all wait for the model. */
  async #step (): Promise<boolean> {
    const { closing } = this.#core
    const identity = closing.aborted ? null : embedIdentity(this.#core)
    if (identity === null) return false
    if (this.#isWoken) this.#queued = []
    this.#isWoken = false
    try {
      await modelCome(this.#core, identity)
      const waiting = new WaitingMemories(this.#core.store, identity)
      const helped = this.#nextQueued(waiting)
      const batch = helped.length > 0 ? helped : await this.#next(identity, waiting)
      if (batch.length === 0) return this.#isWoken
      await embedBatch(this.#core, identity, batch, closing)
      this.#failures = 0
      return true
    } catch (error) {
      if (closing.aborted) return false
      this.#core.log('info', 'memories wait for their vectors', { error: (error as Error).message, failures: this.#failures + 1 })
      this.#pause()
      return false
    }
  }

  /**
   * Of all banks in which few wait; where there are none, of one whose operation waits for those of other banks, so that what is
   * new there does not wait until those are done.
   */
  async #next (identity: string, waiting: WaitingMemories): Promise<readonly Waiting[]> {
    const { store, closing } = this.#core
    const importing = operationsOf(this.#core).table.importing()
    const [few, queued] = [[] as Waiting[], [] as number[]]
    const turns = new Turns(closing)
    for (const seq of waiting.banks()) {
      const bank = store.get<BankRow>('SELECT * FROM banks WHERE seq = ?', [seq])!
      const share = this.#shareOf(bank, identity, waiting, importing)
      if (share === 'few') few.push(...waiting.of(bank, BATCH - few.length))
      if (few.length === BATCH) return few
      if (share === 'queued') queued.push(seq)
      await turns.next()
    }
    if (few.length > 0) return few
    // the queue looks, after a turn, which of the new ones it may begin
    await turn()
    closing.throwIfAborted()
    this.#queued = [...queued.filter(seq => seq > this.#helped), ...queued.filter(seq => seq <= this.#helped)]
    return this.#nextQueued(waiting)
  }

  /** Of the first one whose operation still waits; it comes last the next time. */
  #nextQueued (waiting: WaitingMemories): readonly Waiting[] {
    const { store } = this.#core
    const { table } = operationsOf(this.#core)
    while (this.#queued.length > 0) {
      const [seq, ...others] = this.#queued
      this.#queued = others
      const bank = store.get<BankRow>('SELECT * FROM banks WHERE seq = ?', [seq!])
      if (bank === undefined || table.openStatus(bank.bank_id, 'embedding') !== 'pending') continue
      const batch = waiting.of(bank, BATCH)
      if (batch.length === 0) continue
      this.#helped = seq!
      this.#queued = [...others, seq!]
      return batch
    }
    return []
  }

  /** Which memories of the bank are not left to an import or an operation; makes the operation where many wait. */
  #shareOf (bank: BankRow, identity: string, waiting: WaitingMemories, importing: ReadonlySet<string>): 'few' | 'queued' | 'none' {
    const { bank_id: bankId } = bank
    // one with a slash was deleted, or is not there yet
    if (bankId.startsWith('/') || importing.has(bankId)) return 'none'
    const operations = operationsOf(this.#core)
    const status = operations.table.openStatus(bankId, 'embedding')
    if (status === 'processing') return 'none'
    if (status === null && waiting.of(bank, BATCH + 1).length <= BATCH) return 'few'
    if (status === null) operations.submit({ bankId, type: 'embedding', result: { model: identity } })
    return 'queued'
  }

  /** An operation is to be in the list though nothing is embedded now. */
  #lookSoon (bankId: string): void {
    this.#written.add(bankId)
    this.#lookTimer ??= setTimeout(() => {
      this.#lookTimer = null
      const written = this.#written
      this.#written = new Set()
      this.#look(written).catch((error: unknown) => {
        if (!this.#core.closing.aborted) this.#core.log('info', 'memories wait for their vectors', { error: (error as Error).message })
      })
    }, LOOK_AGAIN_MS).unref()
  }

  async #look (bankIds: Iterable<string>): Promise<void> {
    const { store, closing } = this.#core
    const turns = new Turns(closing)
    for (const bankId of bankIds) {
      const identity = closing.aborted ? null : embedIdentity(this.#core)
      if (identity === null) return
      const bank = findBank(store, bankId)
      const { table } = operationsOf(this.#core)
      if (bank !== undefined) this.#shareOf(bank, identity, new WaitingMemories(store, identity), table.importing())
      await turns.next()
    }
  }

  #pause (): void {
    this.#pauseTimer = setTimeout(() => {
      this.#pauseTimer = null
      this.wake()
    }, pauseMs(++this.#failures))
    this.#pauseTimer.unref()
  }
}

export const startEmbedder: Background = core => {
  const embedder = new Embedder(core)
  const operations = operationsOf(core)
  let seen = -1
  core.hooks.answered.push(({ params }) => {
    if (core.store.writes === seen) return
    seen = core.store.writes
    embedder.wake(params.bank_id)
  })
  core.hooks.retained.push(({ bankId }) => embedder.wake(bankId))
  operations.ended.push(({ type, bankId }) => {
    if (type === 'embedding' || type === 'import_documents' || type === 'import_bank') embedder.wake(bankId)
  })
  operations.cancelling.push(operation => { if (operation.type === 'embedding') leaveOut(core, operation) })
  operations.retrying.push(operation => { if (operation.type === 'embedding') takeIn(core, operation) })
  core.outside.onAbilities(() => embedder.restart())
  embedder.wake()
}
