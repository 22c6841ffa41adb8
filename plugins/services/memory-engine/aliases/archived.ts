import type { Core } from '../core.js'
import type { BankRow } from '../store/bank-table.js'
import { ROWS_AT_ONCE } from '../store/slices.js'
import type { Store } from '../store/store.js'
import { text, wrong, type JsonRow } from '../transfer/checked.js'
import { aliasProblem, countOf, MOST_ALIASES, setPrimary } from './alias.js'

/** Another name of a bank in its archive. */
export interface ArchivedAlias {
  readonly alias: string
  readonly primary: boolean
}

export function* aliasesOf (store: Store, bank: BankRow): Generator<JsonRow> {
  for (let after = ''; ;) {
    const rows = store.all<{ alias: string, is_primary: number }>(
      `SELECT alias, is_primary FROM bank_aliases WHERE bank = ? AND alias > ? ORDER BY alias LIMIT ${ROWS_AT_ONCE}`, [bank.seq, after])
    for (const { alias, is_primary: primary } of rows) yield { alias, primary: primary === 1 }
    if (rows.length < ROWS_AT_ONCE) return
    after = rows.at(-1)!.alias
  }
}

/** Of an archive. Throws what is wrong with it, and where. */
export function aliasesIn (rows: readonly JsonRow[], at: string): readonly ArchivedAlias[] {
  if (rows.length > MOST_ALIASES) throw wrong(at, `at most ${MOST_ALIASES} names`)
  return rows.map(({ alias, primary }, n) => {
    if (typeof primary !== 'boolean') throw wrong(`${at}[${n}].primary`, 'true or false')
    return { alias: text(alias, `${at}[${n}].alias`), primary }
  })
}

/**
 * Gives the bank those that are free; one that it has stays as it is, and so does the primary one. In the caller's transaction.
 * @returns for the result of the operation
 */
export function importAliases (core: Core, bank: BankRow, aliases: readonly ArchivedAlias[]): Record<string, number> {
  const { store, now } = core
  const hadPrimary = store.get('SELECT 1 FROM bank_aliases WHERE bank = ? AND is_primary = 1', [bank.seq]) !== undefined
  let room = bank.bank_id.startsWith('private__') ? 0 : MOST_ALIASES - countOf(store, bank)
  let imported = 0
  for (const { alias, primary } of aliases) {
    if (room <= 0) break
    if (aliasProblem(store, alias) !== null) continue
    store.run('INSERT INTO bank_aliases (alias, bank, created_at) VALUES (?, ?, ?)', [alias, bank.seq, now()])
    if (primary && !hadPrimary) setPrimary(store, bank, alias, true)
    room -= 1
    imported += 1
  }
  return { aliases_imported: imported, aliases_skipped: aliases.length - imported }
}
