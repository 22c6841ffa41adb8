import type { Core } from '../core.js'
import { findBank, LONGEST_ID_BYTES, needBank, type BankRow } from '../store/bank-table.js'
import type { Page } from '../store/page.js'
import { BANK, listed, WireError, type Handler, type WireAnswer, type WireRoute } from '../wire/answer.js'
import { bool, object, optional, readBody, readQuery, required, text, unpaged } from '../wire/shape.js'

/** The gateway's own names of banks: another bank that answers to one of them would get what is meant for it. */
const RESERVED = /^(shared|agents|project__|private__)/

/** Of one bank. */
const MOST_ALIASES = 10_000

/** What a change is answered with. */
const FIRST: Page = { limit: 1000, offset: 0 }

const list: Handler = ({ core, params, query, ignored }) => {
  const page = readQuery(query, ignored, unpaged)
  return view(core, needBank(core.store, params.bank_id!), page)
}

const create: Handler = ({ core, params, body, headers, ignored }) => {
  const { alias, primary } = readBody(body, headers, ignored, object({ alias: required(text), primary: optional(bool, false) }))
  const bank = needBank(core.store, params.bank_id!)
  if (alias.trim() === '' || alias.includes('/') || Buffer.byteLength(alias) > LONGEST_ID_BYTES || RESERVED.test(alias)) {
    throw new WireError(400, `Invalid alias '${alias.slice(0, 100)}'`)
  }
  if (findBank(core.store, alias) !== undefined || ownerOf(core, alias) !== undefined) throw new WireError(409, `'${alias}' is a bank or an alias already`)
  if (countOf(core, bank) >= MOST_ALIASES) {
    throw new WireError(409, `Bank '${bank.bank_id}' has ${MOST_ALIASES} aliases, which is the most: delete one that is not used`)
  }
  core.store.transaction(() => {
    core.store.run('INSERT INTO bank_aliases (alias, bank, created_at) VALUES (?, ?, ?)', [alias, bank.seq, core.now()])
    if (primary) setPrimary(core, bank, alias, true)
  })
  return view(core, bank, FIRST, 201)
}

const update: Handler = ({ core, params, body, headers, ignored }) => {
  const { primary } = readBody(body, headers, ignored, object({ primary: required(bool) }))
  const bank = known(core, params)
  core.store.transaction(() => setPrimary(core, bank, params.alias!, primary))
  return view(core, bank, FIRST)
}

const remove: Handler = ({ core, params }) => {
  const bank = known(core, params)
  core.store.run('DELETE FROM bank_aliases WHERE alias = ? AND bank = ?', [params.alias!, bank.seq])
  return view(core, bank, FIRST)
}

function known (core: Core, { bank_id: bankId, alias }: Readonly<Record<string, string>>): BankRow {
  const bank = needBank(core.store, bankId!)
  if (ownerOf(core, alias!) !== bank.seq) throw new WireError(404, `Alias '${alias}' not found for bank '${bankId}'`)
  return bank
}

function ownerOf ({ store }: Core, alias: string): number | undefined {
  return store.get<{ bank: number }>('SELECT bank FROM bank_aliases WHERE alias = ?', [alias])?.bank
}

/** At most one is. */
function setPrimary ({ store }: Core, bank: BankRow, alias: string, primary: boolean): void {
  if (primary) store.run('UPDATE bank_aliases SET is_primary = 0 WHERE bank = ?', [bank.seq])
  store.run('UPDATE bank_aliases SET is_primary = ? WHERE alias = ? AND bank = ?', [Number(primary), alias, bank.seq])
}

function countOf ({ store }: Core, bank: BankRow): number {
  return store.get<{ total: number }>('SELECT count(*) AS total FROM bank_aliases WHERE bank = ?', [bank.seq])!.total
}

function view (core: Core, bank: BankRow, { limit, offset }: Page, status = 200): WireAnswer {
  const rows = core.store.all<{ alias: string, is_primary: number }>(
    'SELECT alias, is_primary FROM bank_aliases WHERE bank = ? ORDER BY is_primary DESC, alias LIMIT ? OFFSET ?', [bank.seq, limit, offset])
  const aliases = rows.map(({ alias, is_primary: primary }) => ({ alias, primary: primary === 1 }))
  return listed({ bank_id: bank.bank_id, aliases }, countOf(core, bank), status)
}

export const routes: readonly WireRoute[] = [
  { method: 'GET', path: `${BANK}/aliases`, handler: list },
  { method: 'POST', path: `${BANK}/aliases`, handler: create },
  { method: 'PATCH', path: `${BANK}/aliases/{alias}`, handler: update },
  { method: 'DELETE', path: `${BANK}/aliases/{alias}`, handler: remove }
]
