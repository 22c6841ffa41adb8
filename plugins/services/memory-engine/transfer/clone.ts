import type { Core } from '../core.js'
import type { BankRow } from '../store/bank-table.js'
import { turn } from '../store/turn.js'
import type { Run } from '../operations/operation-queue.js'
import type { BankRest, BankSink, BankTable, TransferDocument, TransferObservation } from './archive.js'
import type { JsonRow } from './checked.js'
import { readBank, settingsRow } from './export.js'
import type { BankParts, Filling } from './import.js'
import type { Importing } from './importing.js'

/** A bank as what a new one is filled with, document by document: of its texts no more than that is in memory. */
export function cloneOf (core: Core, bank: BankRow, { data, config }: BankParts, run: Run): Filling {
  const options = { type: 'bank', documentIds: null, data, observations: data, knowledge: data, config, history: false } as const
  return {
    settings: config ? settingsRow(bank) : undefined,
    config,
    write: async work => {
      const copy = new Copy(core, work, run.signal)
      await readBank(core, bank, options, run, copy)
      return copy.rest
    }
  }
}

class Copy implements BankSink {
  readonly #core: Core
  readonly #work: Importing
  readonly #signal: AbortSignal
  readonly #rows: Partial<Record<BankTable, Iterable<JsonRow>>> = {}
  #pages: Iterable<JsonRow> = []

  constructor (core: Core, work: Importing, signal: AbortSignal) {
    this.#core = core
    this.#work = work
    this.#signal = signal
  }

  /** Read from the bank when it is written, in the transaction that ends the operation. */
  get rest (): BankRest { return { rows: this.#rows, knowledgePages: this.#pages } }

  addDocument (document: TransferDocument): void {
    this.#core.store.transaction(() => this.#work.document(document))
  }

  async addObservations (observations: Iterable<TransferObservation>): Promise<void> {
    let n = 0
    for (const observation of observations) {
      this.#core.store.transaction(() => this.#work.observation(observation))
      n += 1
      if (n % OBSERVATIONS_AT_ONCE > 0) continue
      await turn()
      this.#signal.throwIfAborted()
    }
  }

  addHiddenObservations (observations: Iterable<TransferObservation>): Promise<void> {
    return this.addObservations(observations)
  }

  /** They stand in their documents. */
  async addHidden (): Promise<void> {}

  async addRows (table: BankTable, rows: Iterable<JsonRow>): Promise<void> {
    this.#rows[table] = rows
  }

  async addKnowledge (pages: Iterable<JsonRow>): Promise<void> {
    this.#pages = pages
  }

  /** A name leads to one bank. */
  async addAliases (): Promise<void> {}

  /** A copy has a record of its own. */
  async addHistory (): Promise<void> {}
}

const OBSERVATIONS_AT_ONCE = 50
