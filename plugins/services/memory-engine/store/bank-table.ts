import { bankNotFound, WireError } from '../wire/error.js'
import { dropTextIndex, makeTextIndex } from './text-index.js'
import type { Store } from './store.js'

export interface BankRow {
  readonly seq: number
  readonly bank_id: string
  readonly name: string
  /** JSON of the configuration that is the bank's own. */
  readonly overrides: string
  readonly created_at: number
  readonly updated_at: number
  readonly last_write_at: number | null
  readonly last_document_at: number | null
  readonly last_consolidated_at: number | null
  /** The model for which memories up to the second one stay without a vector, as a client cancelled that; null for none. */
  readonly embed_cancelled: string | null
  readonly embed_cancelled_upto: number | null
}

/** Of a bank's id, and of its other names. */
export const LONGEST_ID_BYTES = 192

export function findBank (store: Store, bankId: string): BankRow | undefined {
  return store.kept<BankRow>('SELECT * FROM banks WHERE bank_id = ?', [bankId])
}

/** Throws the wire's 404. */
export function needBank (store: Store, bankId: string): BankRow {
  const bank = findBank(store, bankId)
  if (bank === undefined) throw bankNotFound(bankId)
  return bank
}

/** The bank, made now if there is none. Throws the wire's 400 for an id that cannot be one. */
export function ensureBank (store: Store, bankId: string, now: number): BankRow {
  const known = findBank(store, bankId)
  if (known !== undefined) return known
  if (Buffer.byteLength(bankId) > LONGEST_ID_BYTES) throw new WireError(400, `Bank id is longer than ${LONGEST_ID_BYTES} bytes`)
  return store.transaction(() => {
    const { rowid } = store.run('INSERT INTO banks (bank_id, name, created_at, updated_at) VALUES (?, ?, ?, ?)', [bankId, bankId, now, now])
    makeTextIndex(store, rowid)
    return findBank(store, bankId)!
  })
}

/** With all that is in it. Returns how many memories went. */
export function deleteBank (store: Store, bank: BankRow): number {
  return store.transaction(() => {
    const { count } = store.get<{ count: number }>('SELECT count(*) AS count FROM memories WHERE bank = ?', [bank.seq])!
    dropTextIndex(store, bank.seq)
    store.run('DELETE FROM banks WHERE seq = ?', [bank.seq])
    return count
  })
}

export function overridesOf (bank: BankRow): Readonly<Record<string, unknown>> {
  return JSON.parse(bank.overrides) as Record<string, unknown>
}
