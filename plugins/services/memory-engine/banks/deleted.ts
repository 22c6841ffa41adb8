import type { Core } from '../core.js'
import { deleteBank, findBank, type BankRow } from '../store/bank-table.js'
import type { Store } from '../store/store.js'
import { turn } from '../store/turn.js'

/*
 * A large bank is deleted in two steps. The first is a transaction that takes its name and what acts by itself: from then on
 * nothing leads to it, and a new bank may have the name. Its rows go slice by slice behind that, with requests served between
 * them; what a closing or killed engine leaves of them goes at its next start.
 */

/** No path leads to a bank whose id has a slash. */
const PREFIX = '/deleted/'
const ROWS_AT_ONCE = 200
const SLICED = ['memories', 'documents'] as const
/** What a bank does without being asked, its names, and rows with ids of their own that another bank may come to have. */
const FIRST = ['webhooks', 'bank_aliases', 'consolidations', 'knowledge_nodes', 'mental_models', 'directives', 'clearings']

/** Returns how many memories went. */
export function removeBank (core: Core, bank: BankRow): number {
  const { store } = core
  const [memories, documents] = SLICED.map(table =>
    store.get<{ count: number }>(`SELECT count(*) AS count FROM ${table} WHERE bank = ?`, [bank.seq])!.count) as [number, number]
  if (Math.max(memories, documents) <= ROWS_AT_ONCE) return deleteBank(store, bank)
  store.transaction(() => {
    for (const table of FIRST) store.run(`DELETE FROM ${table} WHERE bank = ?`, [bank.seq])
    for (const table of ['operations', 'audit_log']) store.run(`DELETE FROM ${table} WHERE bank_id = ?`, [bank.bank_id])
    store.run('UPDATE banks SET bank_id = ? WHERE seq = ?', [`${PREFIX}${bank.seq}`, bank.seq])
  })
  sweepDeleted(core)
  return memories
}

/** Slice by slice: other requests are served between them. What is left when the engine closes stays. */
export async function dropInSlices ({ store, closing }: Core, { seq, bank_id: bankId }: BankRow): Promise<void> {
  for (const table of SLICED) {
    const slice = `DELETE FROM ${table} WHERE seq IN (SELECT seq FROM ${table} WHERE bank = ? LIMIT ${ROWS_AT_ONCE})`
    while (!closing.aborted && store.run(slice, [seq]).changes > 0) await turn()
  }
  if (closing.aborted) return
  const emptied = findBank(store, bankId)
  if (emptied !== undefined) deleteBank(store, emptied)
}

/** A memory that is brought with its id has it before one whose bank was deleted. Called in a transaction. */
export function releaseId (store: Store, id: string): void {
  store.run(`DELETE FROM memories WHERE id = ? AND bank IN ${DELETED_BANKS}`, [id])
}

/** In SQL: the numbers of banks that were deleted and have rows left. */
export const DELETED_BANKS = `(SELECT seq FROM banks WHERE bank_id GLOB '${PREFIX}*')`

const sweeping = new WeakSet<Core>()

/** Rows of deleted banks go, one bank after the other. */
export function sweepDeleted (core: Core): void {
  if (sweeping.has(core)) return
  sweeping.add(core)
  dropAll(core).catch((error: unknown) => {
    sweeping.delete(core)
    if (core.closing.aborted) return
    core.log('warn', 'rows of a deleted bank could not be removed; they go at the next start', { error: (error as Error).message })
  })
}

async function dropAll (core: Core): Promise<void> {
  // the request that deleted it is answered first
  await turn()
  while (!core.closing.aborted) {
    const bank = core.store.get<BankRow>(`SELECT * FROM banks WHERE seq IN ${DELETED_BANKS} ORDER BY seq LIMIT 1`)
    if (bank === undefined) return void sweeping.delete(core)
    await dropInSlices(core, bank)
  }
}
