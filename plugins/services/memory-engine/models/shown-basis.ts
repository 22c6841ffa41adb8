import { fact } from '../llm/reflect-routes.js'
import { recalledRows } from '../recall/recalled-row.js'
import type { BankRow } from '../store/bank-table.js'
import type { Store } from '../store/store.js'
import { scopeOf } from './refresh.js'
import { tagsMatch } from './tag-match.js'
import { basisIn, DIRECTIVES, modelKinds, namedIn, type ReflectResponse } from './basis.js'

/** With the texts of what is there, valid, and such that the tags of the mental model let it be read; of the rest the ids. */
export function withTexts<T extends ReflectResponse | null> (
  store: Store, bank: Pick<BankRow, 'seq' | 'bank_id'>, model: Reader, response: T
): T {
  const lists = basisIn(response)
  if (lists === null) return response
  const shown = Object.entries(lists)
    .map(([kind, list]) => [kind, kind === DIRECTIVES ? list : filled(store, bank, model, kind, list)])
  return { ...response, based_on: Object.fromEntries(shown) as unknown }
}

function filled (
  store: Store, bank: Pick<BankRow, 'seq' | 'bank_id'>, model: Reader, kind: string, list: readonly unknown[]
): ReadonlyArray<Readonly<Record<string, unknown>>> {
  const named = namedIn(list)
  if (named.length === 0) return []
  const ids = JSON.stringify(named.map(({ id }) => id))
  const { tags: wanted, tagsMatch: mode } = scopeOf(model)
  const isRead = (tags: string): boolean => tagsMatch(JSON.parse(tags) as string[], wanted, mode)
  const found = modelKinds.has(kind) ? modelsBy(store, bank.seq, ids, isRead) : memoriesBy(store, bank, ids, isRead)
  return named.map(each => found.get(each.id) ?? { ...each })
}

type Reader = Parameters<typeof scopeOf>[0]
type IsRead = (tags: string) => boolean
type Found = ReadonlyMap<string, Readonly<Record<string, unknown>>>

function memoriesBy (
  store: Store, { seq: bank, bank_id: bankId }: Pick<BankRow, 'seq' | 'bank_id'>, ids: string, isRead: IsRead
): Found {
  const seqs = store.all<{ seq: number }>('SELECT seq FROM memories WHERE bank = ? AND id IN (SELECT value FROM json_each(?))', [bank, ids])
  const rows = [...recalledRows(store, seqs.map(({ seq }) => seq)).values()]
  return new Map(rows.filter(({ tags }) => isRead(tags)).map(row => [row.id, fact(bankId, row)]))
}

function modelsBy (store: Store, bank: number, ids: string, isRead: IsRead): Found {
  const rows = store.all<{ id: string, content: string, tags: string }>('SELECT id, content, tags FROM mental_models WHERE bank = ? AND id IN (SELECT value FROM json_each(?))', [bank, ids])
  return new Map(rows.filter(({ tags }) => isRead(tags)).map(({ id, content }) => [id, { id, text: content, context: null }]))
}
