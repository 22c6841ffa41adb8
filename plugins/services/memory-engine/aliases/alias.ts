import type { Store } from '../store/store.js'

/**
 * The bank that a name of a path means: another name of a bank, or its own. What is one agent's alone is known by its name and
 * reached by no other, whatever was allowed once.
 */
export function bankOf (store: Store, name: string): string {
  return store.get<{ bank_id: string }>(`SELECT b.bank_id FROM bank_aliases a JOIN banks b ON b.seq = a.bank WHERE a.alias = ? AND b.bank_id NOT GLOB 'private__*'`, [name])?.bank_id ?? name
}
