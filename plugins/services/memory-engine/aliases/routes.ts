import type { Core } from '../core.js'
import { needBank, type BankRow } from '../store/bank-table.js'
import type { Page } from '../store/page.js'
import { BANK, listed, WireError, type Handler, type WireAnswer, type WireRoute } from '../wire/answer.js'
import { bool, object, optional, readBody, readQuery, required, text, unpaged } from '../wire/shape.js'
import { aliasProblem, countOf, MOST_ALIASES, ownerOf, setPrimary } from './alias.js'

/** What a change is answered with. */
const FIRST: Page = { limit: 1000, offset: 0 }

const list: Handler = ({ core, params, query, ignored }) => {
  const page = readQuery(query, ignored, unpaged)
  return view(core, needBank(core.store, params.bank_id!), page)
}

const create: Handler = ({ core, params, body, headers, ignored }) => {
  const { alias, primary } = readBody(body, headers, ignored, object({ alias: required(text), primary: optional(bool, false) }))
  const bank = needBank(core.store, params.bank_id!)
  const problem = aliasProblem(core.store, alias)
  if (problem === 'invalid') throw new WireError(400, `Invalid alias '${alias.slice(0, 100)}'`)
  if (problem === 'taken') throw new WireError(409, `'${alias}' is a bank or an alias already`)
  if (countOf(core.store, bank) >= MOST_ALIASES) {
    throw new WireError(409, `Bank '${bank.bank_id}' has ${MOST_ALIASES} aliases, which is the limit; delete one that is not used`)
  }
  core.store.transaction(() => {
    core.store.run('INSERT INTO bank_aliases (alias, bank, created_at) VALUES (?, ?, ?)', [alias, bank.seq, core.now()])
    if (primary) setPrimary(core.store, bank, alias, true)
  })
  return view(core, bank, FIRST, 201)
}

const update: Handler = ({ core, params, body, headers, ignored }) => {
  const { primary } = readBody(body, headers, ignored, object({ primary: required(bool) }))
  const bank = known(core, params)
  core.store.transaction(() => setPrimary(core.store, bank, params.alias!, primary))
  return view(core, bank, FIRST)
}

const remove: Handler = ({ core, params }) => {
  const bank = known(core, params)
  core.store.run('DELETE FROM bank_aliases WHERE alias = ? AND bank = ?', [params.alias!, bank.seq])
  return view(core, bank, FIRST)
}

function known (core: Core, { bank_id: bankId, alias }: Readonly<Record<string, string>>): BankRow {
  const bank = needBank(core.store, bankId!)
  if (ownerOf(core.store, alias!) !== bank.seq) throw new WireError(404, `Alias '${alias}' not found for bank '${bankId}'`)
  return bank
}

function view (core: Core, bank: BankRow, { limit, offset }: Page, status = 200): WireAnswer {
  const rows = core.store.all<{ alias: string, is_primary: number }>(
    'SELECT alias, is_primary FROM bank_aliases WHERE bank = ? ORDER BY is_primary DESC, alias LIMIT ? OFFSET ?', [bank.seq, limit, offset])
  const aliases = rows.map(({ alias, is_primary: primary }) => ({ alias, primary: primary === 1 }))
  return listed({ bank_id: bank.bank_id, aliases }, countOf(core.store, bank), status)
}

export const routes: readonly WireRoute[] = [
  { method: 'GET', path: `${BANK}/aliases`, handler: list },
  { method: 'POST', path: `${BANK}/aliases`, handler: create },
  { method: 'PATCH', path: `${BANK}/aliases/{alias}`, handler: update },
  { method: 'DELETE', path: `${BANK}/aliases/{alias}`, handler: remove }
]
