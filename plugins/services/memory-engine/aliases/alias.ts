import type { Store } from '../store/store.js'

/** The bank that a name of a path means: another name of a bank, or its own. */
export function bankOf (store: Store, name: string): string {
  return store.get<{ bank_id: string }>('SELECT b.bank_id FROM bank_aliases a JOIN banks b ON b.seq = a.bank WHERE a.alias = ?', [name])?.bank_id ?? name
}
