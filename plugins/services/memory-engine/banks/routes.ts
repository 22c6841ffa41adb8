import type { Core } from '../core.js'
import { BANK, json, WireError, type Handler, type WireCall, type WireRoute } from '../wire/answer.js'
import { int, mapOf, anything, maybe, object, optional, pageLimit, readBody, readQuery, required, text, type Field } from '../wire/shape.js'
import { wireTime } from '../wire/times.js'
import { ensureBank, findBank, needBank, overridesOf, type BankRow } from '../store/bank-table.js'
import { containing } from '../store/like.js'
import { removeBank } from './deleted.js'
import { configDefaults, configOf, configProblem } from './config.js'
import { dispositionOf, missionOf, PROFILE_GONE, profileOf, traits } from './profile.js'
import { statsOf, timeseriesOf } from './stats.js'

/** Keys of `CreateBankRequest` that are the bank's configuration. */
const configKeys = [
  'reflect_mission', 'retain_mission', 'retain_extraction_mode', 'retain_custom_instructions', 'retain_chunk_size',
  'retain_structured_chunk_size', 'retain_max_attachments_per_chunk', 'enable_observations', 'observations_mission',
  'enable_text_search',
  'enable_temporal_retrieval', 'enable_graph_retrieval', 'enable_reranking', ...traits.map(name => `disposition_${name}`)
]
const trait = required(int({ min: 1, max: 5 }))
const disposition = object({ skepticism: trait, literalism: trait, empathy: trait })
const bankRequest = object({
  name: maybe(text), mission: maybe(text), background: maybe(text), disposition: maybe(disposition),
  ...Object.fromEntries(configKeys.map(key => [key, maybe(anything)])) as Record<string, Field<unknown>>
})

export const routes: readonly WireRoute[] = [
  { method: 'GET', path: '/v1/default/banks', handler: listBanks },
  { method: 'PUT', path: BANK, handler: writeBank },
  { method: 'PATCH', path: BANK, handler: call => { needBank(call.core.store, call.params.bank_id!); return writeBank(call) } },
  { method: 'DELETE', path: BANK, handler: remove },
  { method: 'GET', path: `${BANK}/stats`, handler: ({ core, params, query, ignored }) => {
    readQuery(query, ignored, { refresh: maybe(text) })
    return json(statsOf(core.store, needBank(core.store, params.bank_id!)))
  } },
  { method: 'GET', path: `${BANK}/stats/memories-timeseries`, handler: ({ core, params, query, ignored }) => {
    const { period, time_field: field } = readQuery(query, ignored, {
      period: optional(text, '7d'), time_field: optional(text, 'created_at')
    })
    return json(timeseriesOf(core.store, needBank(core.store, params.bank_id!), period, field, core.now()))
  } },
  { method: 'GET', path: `${BANK}/config`, handler: ({ core, params }) => json(configAnswer(needBank(core.store, params.bank_id!))) },
  { method: 'PATCH', path: `${BANK}/config`, handler: patchConfig },
  { method: 'DELETE', path: `${BANK}/config`, handler: ({ core, params }) => {
    const bank = needBank(core.store, params.bank_id!)
    return json(configAnswer(update(core, bank, { overrides: {} })))
  } },
  ...gone('GET', '/profile'), ...gone('PUT', '/profile'), ...gone('POST', '/background')
]

function gone (method: WireRoute['method'], path: string): WireRoute[] {
  return [{ method, path: `${BANK}${path}`, handler: () => json({ detail: PROFILE_GONE }, 410) }]
}

function listBanks ({ core: { store }, query, ignored }: WireCall): ReturnType<Handler> {
  const { q, limit, offset } = readQuery(query, ignored, {
    q: maybe(text), limit: pageLimit(100), offset: optional(int({ min: 0 }), 0)
  })
  const like = containing(q ?? '')
  // a bank that is being imported has no name yet
  const where = `WHERE bank_id NOT LIKE '/%' AND (bank_id LIKE ? ESCAPE '\\' OR name LIKE ? ESCAPE '\\')`
  const { total } = store.get<{ total: number }>(`SELECT count(*) AS total FROM banks ${where}`, [like, like])!
  const rows = store.all<BankRow & { facts: number }>(
    `SELECT banks.*, (SELECT count(*) FROM memories WHERE bank = banks.seq AND state = 'valid') AS facts
     FROM banks ${where} ORDER BY coalesce(last_write_at, updated_at) DESC, seq DESC LIMIT ? OFFSET ?`, [like, like, limit, offset])
  const banks = rows.map(bank => ({
    bank_id: bank.bank_id, name: bank.name, disposition: dispositionOf(bank), mission: missionOf(bank),
    created_at: wireTime(bank.created_at), updated_at: wireTime(bank.updated_at), fact_count: bank.facts,
    last_document_at: wireTime(bank.last_document_at), last_write_at: wireTime(bank.last_write_at),
    display_alias: null, matched_aliases: []
  }))
  return json({ banks, total, limit, offset })
}

function writeBank ({ core, params, body, headers, ignored }: WireCall): ReturnType<Handler> {
  const { name, mission, background, disposition: given, ...config } = readBody(body, headers, ignored, bankRequest)
  const changes: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(config)) if (value !== null) changes[key] = value
  const words = mission ?? background
  if (words !== null && changes.reflect_mission === undefined) changes.reflect_mission = words
  if (given !== null) for (const each of traits) changes[`disposition_${each}`] ??= given[each]
  const problem = configProblem(changes)
  if (problem !== null) throw new WireError(400, problem)
  const bank = ensureBank(core.store, params.bank_id!, core.now())
  return json(profileOf(update(core, bank, { name, overrides: { ...overridesOf(bank), ...changes } })))
}

function remove ({ core, params }: WireCall): ReturnType<Handler> {
  const bankId = params.bank_id!
  const bank = findBank(core.store, bankId)
  const count = bank === undefined ? 0 : removeBank(core, bank)
  return json({ success: true, message: `Bank '${bankId}' and all associated data deleted successfully`, deleted_count: count })
}

function patchConfig ({ core, params, body, headers, ignored }: WireCall): ReturnType<Handler> {
  const { updates } = readBody(body, headers, ignored, object({ updates: required(mapOf(anything)) }))
  const bank = needBank(core.store, params.bank_id!)
  const problem = configProblem(updates)
  if (problem !== null) throw new WireError(400, problem)
  const overrides = Object.fromEntries(Object.entries({ ...overridesOf(bank), ...updates }).filter(([, value]) => value !== null))
  return json(configAnswer(update(core, bank, { overrides })))
}

interface BankChange { readonly name?: string | null, readonly overrides: Readonly<Record<string, unknown>> }

function update ({ store, now }: Core, bank: BankRow, { name, overrides }: BankChange): BankRow {
  store.run('UPDATE banks SET name = ?, overrides = ?, updated_at = ? WHERE seq = ?',
    [name ?? bank.name, JSON.stringify(overrides), now(), bank.seq])
  return needBank(store, bank.bank_id)
}

function configAnswer (bank: BankRow): Readonly<Record<string, unknown>> {
  const own = overridesOf(bank)
  const keys = Object.keys(configDefaults).filter(key => Object.hasOwn(own, key))
  const overrides = Object.fromEntries(keys.map(key => [key, own[key]]))
  return { bank_id: bank.bank_id, config: configOf(bank), overrides }
}
