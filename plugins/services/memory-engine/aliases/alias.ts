import { findBank, LONGEST_ID_BYTES, type BankRow } from '../store/bank-table.js'
import type { Store } from '../store/store.js'

/** The gateway's own names of banks: another bank that answers to one of them would get what is meant for it. */
const RESERVED = /^(shared|agents|project__|private__)/

/** Of one bank. */
export const MOST_ALIASES = 10_000

/**
 * The bank that a name of a path means: another name of a bank, or its own. What is one agent's alone is known by its name and
 * reached by no other, whatever was allowed once.
 */
export function bankOf (store: Store, name: string): string {
  const known = store.kept<{ bank_id: string }>(
    `SELECT b.bank_id FROM bank_aliases a JOIN banks b ON b.seq = a.bank WHERE a.alias = ? AND b.bank_id NOT GLOB 'private__*'`, [name])
  return known?.bank_id ?? name
}

/** Why a bank cannot be called so too; null if it can. */
export function aliasProblem (store: Store, alias: string): 'invalid' | 'taken' | null {
  if (alias.trim() === '' || alias.includes('/') || Buffer.byteLength(alias) > LONGEST_ID_BYTES || RESERVED.test(alias)) return 'invalid'
  return findBank(store, alias) !== undefined || ownerOf(store, alias) !== undefined ? 'taken' : null
}

/** The number of the bank that has that other name. */
export function ownerOf (store: Store, alias: string): number | undefined {
  return store.get<{ bank: number }>('SELECT bank FROM bank_aliases WHERE alias = ?', [alias])?.bank
}

export function countOf (store: Store, bank: BankRow): number {
  return store.get<{ total: number }>('SELECT count(*) AS total FROM bank_aliases WHERE bank = ?', [bank.seq])!.total
}

/** At most one is. In the caller's transaction. */
export function setPrimary (store: Store, bank: BankRow, alias: string, primary: boolean): void {
  if (primary) store.run('UPDATE bank_aliases SET is_primary = 0 WHERE bank = ?', [bank.seq])
  store.run('UPDATE bank_aliases SET is_primary = ? WHERE alias = ? AND bank = ?', [Number(primary), alias, bank.seq])
}
