import { fact } from '../llm/reflect-routes.js'
import { recalledRows } from '../recall/recalled-row.js'
import type { BankRow } from '../store/bank-table.js'
import type { Store } from '../store/store.js'
import { basisIn, DIRECTIVES, modelKinds, namedIn, type ReflectResponse } from './basis.js'

/** With the texts of what is there and valid; of the rest the ids. */
export function withTexts<T extends ReflectResponse | null> (
  store: Store, bank: Pick<BankRow, 'seq' | 'bank_id'>, response: T
): T {
  const lists = basisIn(response)
  if (lists === null) return response
  const shown = Object.entries(lists).map(([kind, list]) => [kind, kind === DIRECTIVES ? list : filled(store, bank, kind, list)])
  return { ...response, based_on: Object.fromEntries(shown) as unknown }
}

function filled (
  store: Store, bank: Pick<BankRow, 'seq' | 'bank_id'>, kind: string, list: readonly unknown[]
): ReadonlyArray<Readonly<Record<string, unknown>>> {
  const named = namedIn(list)
  if (named.length === 0) return []
  const ids = JSON.stringify(named.map(({ id }) => id))
  const found = modelKinds.has(kind) ? modelsBy(store, bank.seq, ids) : memoriesBy(store, bank, ids)
  return named.map(each => found.get(each.id) ?? { ...each })
}

type Found = ReadonlyMap<string, Readonly<Record<string, unknown>>>

function memoriesBy (store: Store, { seq: bank, bank_id: bankId }: Pick<BankRow, 'seq' | 'bank_id'>, ids: string): Found {
  const seqs = store.all<{ seq: number }>('SELECT seq FROM memories WHERE bank = ? AND id IN (SELECT value FROM json_each(?))', [bank, ids])
  return new Map([...recalledRows(store, seqs.map(({ seq }) => seq)).values()].map(row => [row.id, fact(bankId, row)]))
}

function modelsBy (store: Store, bank: number, ids: string): Found {
  const rows = store.all<{ id: string, content: string }>('SELECT id, content FROM mental_models WHERE bank = ? AND id IN (SELECT value FROM json_each(?))', [bank, ids])
  return new Map(rows.map(({ id, content }) => [id, { id, text: content, context: null }]))
}
