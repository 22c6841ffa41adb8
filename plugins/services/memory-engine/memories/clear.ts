import type { Core } from '../core.js'
import { inTurn } from '../retain/turns.js'
import type { BankRow } from '../store/bank-table.js'
import { deleteMemories, type MemoryRow } from '../store/memory-table.js'
import { turn } from '../store/turn.js'

/*
 * Many memories, or those of a large document, are deleted slice by slice, with other requests served in between. A slice is a
 * transaction, after which each memory is there with all that goes with it, or gone. What is to go is written down with the
 * first one: a killed process goes on with it at its next start. Retains of the bank wait for their turn.
 */

/** A slice takes as long as this, and so many steps whatever they take: few memories go in one transaction. */
const SLICE_MS = 5
const FEW = 16
const ROWS_AT_ONCE = 100

export interface Cleared {
  /** Null for memories of all types, and the documents with them. */
  readonly type: string | null
  /** Facts that were consolidated are open again. */
  readonly reopens: boolean
}

/** A deletion that was begun, of what was there then. */
interface Clearing {
  readonly seq: number
  readonly bank: number
  readonly fact_type: string | null
  readonly reopens: number
  readonly last_memory: number
  readonly last_document: number
  /** Null for the whole bank. */
  readonly document: number | null
}

/** Resolves when they are gone, with their number; observations that were made from them count too. */
export async function clearMemories (core: Core, bank: BankRow, cleared: Cleared): Promise<number> {
  return await clear(core, bank, () => begun(core, bank.seq, cleared))
}

/** Resolves when a large document is gone, with the number of its memories; 0 if it had gone before its turn. */
export async function clearDocument (core: Core, bank: BankRow, document: number): Promise<number> {
  return await clear(core, bank, () =>
    core.store.get('SELECT 1 FROM documents WHERE seq = ?', [document]) === undefined ? null
      : begun(core, bank.seq, { type: null, reopens: false }, document))
}

async function clear (core: Core, bank: BankRow, begin: () => Clearing | null): Promise<number> {
  let count = 0
  await inTurn(core, bank.bank_id, async () => { count = await inSlices(core, new Clear(core, begin)) })
  return count
}

/** Goes on with what a killed or closed engine has begun. */
export function resumeClearings (core: Core): void {
  const left = core.store.all<Clearing & { readonly bank_id: string }>(
    'SELECT clearings.*, bank_id FROM clearings JOIN banks ON banks.seq = bank ORDER BY clearings.seq')
  for (const clearing of left) {
    const goOn = async (): Promise<void> => void await inSlices(core, new Clear(core, () => clearing))
    inTurn(core, clearing.bank_id, goOn).catch((error: unknown) => {
      if (core.closing.aborted) return
      core.log('warn', 'memories that were deleted could not all be removed; the others go at the next start', { error: (error as Error).message })
    })
  }
}

/** Returns how many memories went. */
async function inSlices ({ store, closing }: Core, clear: Clear): Promise<number> {
  const steps = clear.steps()
  for (let isOver = false; !isOver;) {
    closing.throwIfAborted()
    store.transaction(() => {
      const start = performance.now()
      isOver = !clear.isWanted
      for (let taken = 0; !isOver && (taken < FEW || performance.now() - start < SLICE_MS); taken++) {
        isOver = steps.next().done === true
      }
    })
    if (!isOver) await turn()
  }
  return clear.count
}

/** Null if the bank was deleted meanwhile. */
function begun ({ store, now }: Core, bank: number, { type, reopens }: Cleared, document: number | null = null): Clearing | null {
  if (store.run('UPDATE banks SET last_write_at = ? WHERE seq = ?', [now(), bank]).changes === 0) return null
  // what consolidations could bring back are observations, of this bank and no longer there
  if (document === null && (type === null || type === 'observation')) store.run('DELETE FROM consolidations WHERE bank = ?', [bank])
  const last = (table: 'memories' | 'documents'): number => store.get<{ seq: number | null }>(`SELECT max(seq) AS seq FROM ${table}`)!.seq ?? 0
  const { rowid } = store.run('INSERT INTO clearings (bank, fact_type, reopens, last_memory, last_document, document) VALUES (?, ?, ?, ?, ?, ?)',
    [bank, type, reopens ? 1 : 0, last('memories'), last('documents'), document])
  return store.get<Clearing>('SELECT * FROM clearings WHERE seq = ?', [rowid])!
}

class Clear {
  readonly #core: Core
  readonly #begin: () => Clearing | null
  #clearing: Clearing | null = null
  #count = 0

  constructor (core: Core, begin: () => Clearing | null) {
    this.#core = core
    this.#begin = begin
  }

  get count (): number { return this.#count }

  /** False once its bank, or its document, was deleted. */
  get isWanted (): boolean {
    return this.#clearing === null || this.#core.store.get('SELECT 1 FROM clearings WHERE seq = ?', [this.#clearing.seq]) !== undefined
  }

  /** One after the other, each in the caller's transaction. */
  * steps (): Generator<void> {
    const clearing = this.#clearing = this.#begin()
    if (clearing === null) return
    if (clearing.document !== null) return yield* this.#document(clearing.document)
    // one that is edited meanwhile may come to stand before those that were looked at
    for (let before = -1; before !== this.#count;) {
      before = this.#count
      yield* this.#memories(clearing)
    }
    if (clearing.reopens === 1) yield* this.#reopened(clearing)
    if (clearing.fact_type === null) yield* this.#documents(clearing)
    this.#core.store.run('DELETE FROM clearings WHERE seq = ?', [clearing.seq])
  }

  * #memories ({ bank, fact_type: type, last_memory: last }: Clearing): Generator<void> {
    const { store } = this.#core
    for (const seq of this.#all(bank)) {
      // as it is now, and not as it was when others were looked at
      const row = seq > last ? undefined : store.get<MemoryRow>('SELECT * FROM memories WHERE seq = ? AND bank = ?', [seq, bank])
      if (row !== undefined && (type === null || row.fact_type === type)) this.#count += deleteMemories(store, [row])
      yield
    }
  }

  * #reopened ({ bank }: Clearing): Generator<void> {
    for (const seq of this.#all(bank)) {
      this.#core.store.run('UPDATE memories SET consolidated_at = NULL WHERE seq = ? AND consolidated_at IS NOT NULL', [seq])
      yield
    }
  }

  /** Memories of the bank, by their numbers, in an order that an index has. */
  * #all (bank: number): Generator<number> {
    const { store } = this.#core
    let after: { readonly seq: number, readonly text_hash: Buffer | ArrayBuffer } = { seq: 0, text_hash: Buffer.alloc(0) }
    for (;;) {
      const hash = Buffer.from(after.text_hash as ArrayBuffer)
      // in two steps: both bounds as one would walk through all that say the same, in each slice
      const same = store.all<typeof after>(`SELECT seq, text_hash FROM memories WHERE bank = ? AND text_hash = ? AND seq > ?
        ORDER BY seq LIMIT ${ROWS_AT_ONCE}`, [bank, hash, after.seq])
      const rows = same.length > 0 ? same : store.all<typeof after>(`SELECT seq, text_hash FROM memories WHERE bank = ? AND text_hash > ?
        ORDER BY text_hash, seq LIMIT ${ROWS_AT_ONCE}`, [bank, hash])
      for (const { seq } of rows) yield seq
      if (rows.length === 0) return
      after = rows.at(-1)!
    }
  }

  * #documents ({ bank, last_document: last }: Clearing): Generator<void> {
    const { store } = this.#core
    for (;;) {
      const document = store.get<{ seq: number }>('SELECT seq FROM documents WHERE bank = ? AND seq <= ? ORDER BY seq LIMIT 1', [bank, last])
      if (document === undefined) return
      yield* this.#document(document.seq)
    }
  }

  /** With its last row goes the clearing that is of it alone. */
  * #document (document: number): Generator<void> {
    const { store } = this.#core
    for (let isOver = false; !isOver;) {
      // facts may be found in it meanwhile
      const row = store.get<MemoryRow>('SELECT * FROM memories WHERE document = ? LIMIT 1', [document])
      if (row !== undefined) this.#count += deleteMemories(store, [row])
      else {
        const chunks = `SELECT seq FROM chunks WHERE document = ? LIMIT ${ROWS_AT_ONCE}`
        isOver = store.run(`DELETE FROM chunks WHERE seq IN (${chunks})`, [document]).changes < ROWS_AT_ONCE
      }
      if (isOver) store.run('DELETE FROM documents WHERE seq = ?', [document])
      yield
    }
  }
}
