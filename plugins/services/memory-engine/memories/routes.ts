import { clearMemories } from './clear.js'
import { deleteForGood } from './delete.js'
import { joined, tagCondition, tagModes, type Condition } from './tag-filter.js'
import { detail, listItem, SHOWN, sourceRows, sourcesOf, type ShownMemory } from './view.js'
import { needBank, type BankRow } from '../store/bank-table.js'
import { editMemory, factTypes, invalidateMemory, restoreMemory, type MemoryEdit } from '../store/memory-table.js'
import { containing } from '../store/like.js'
import type { Cell, Store } from '../store/store.js'
import { BANK, json, listed, WireError, type Handler, type WireAnswer, type WireCall, type WireRoute } from '../wire/answer.js'
import { bool, int, listOf, maybe, nullable, object, oneOf, optional, pageLimit, readBody, readQuery, text, unpaged } from '../wire/shape.js'
import { parseTime, wireTime } from '../wire/times.js'

const UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i
const ONE = `${BANK}/memories/{memory_id}`

export const routes: readonly WireRoute[] = [
  { method: 'GET', path: `${BANK}/memories/list`, handler: list },
  { method: 'GET', path: ONE, handler: call => {
    const { bank, row } = oneMemory(call)
    return json(detail(bank.bank_id, row, sourceRows(call.core.store, row)))
  } },
  { method: 'PATCH', path: ONE, handler: patch },
  // beyond the wire: the server has invalidation alone
  { method: 'DELETE', path: ONE, handler: call => {
    const { row } = oneMemory(call)
    deleteForGood(call.core, row)
    return json({ success: true, message: `Memory unit '${row.id}' deleted`, deleted_count: 1 })
  } },
  { method: 'GET', path: `${ONE}/history`, handler: history },
  { method: 'DELETE', path: `${BANK}/memories`, handler: clear }
]

const timeFields = ['created_at', 'updated_at', 'mentioned_at', 'occurred_start', 'occurred_end'] as const

function list ({ core: { store }, params, query, ignored }: WireCall): ReturnType<Handler> {
  const given = readQuery(query, ignored, {
    type: maybe(text), q: maybe(text), consolidation_state: maybe(text), state: maybe(text),
    document_id: maybe(text), entity_id: maybe(text),
    tags: maybe(listOf(text)), tags_match: optional(oneOf(...tagModes), 'any'), time_field: maybe(oneOf(...timeFields)),
    start_date: maybe(text), end_date: maybe(text), limit: pageLimit(100, 0), offset: optional(int({ min: 0 }), 0)
  }, ['tags'])
  const bank = needBank(store, params.bank_id!)
  const { sql, values } = listCondition(bank, given, isOfFew(store, bank, given) ? '+m' : 'm')
  const { total } = store.get<{ total: number }>(`SELECT count(*) AS total FROM memories m WHERE ${sql}`, values)!
  const rows = store.all<ShownMemory>(
    `${SHOWN} WHERE ${sql} ORDER BY m.mentioned_at DESC, m.seq DESC LIMIT ? OFFSET ?`, [...values, given.limit, given.offset])
  const sources = sourcesOf(store, rows)
  const items = rows.map(row => listItem(bank.bank_id, row, sources.get(row.seq) ?? []))
  return json({ items, total, limit: given.limit, offset: given.offset })
}

interface ListQuery {
  readonly type: string | null
  readonly q: string | null
  readonly consolidation_state: string | null
  readonly state: string | null
  readonly document_id: string | null
  readonly entity_id: string | null
  readonly tags: readonly string[] | null
  readonly tags_match: typeof tagModes[number]
  readonly time_field: typeof timeFields[number] | null
  readonly start_date: string | null
  readonly end_date: string | null
}

/** So many are sorted for a page; of more, the bank's order is walked through. */
const MOST_SORTED = 1000

/** Whether it is of a document or an entity that has few memories. */
function isOfFew (store: Store, { seq: bank }: BankRow, { document_id: document, entity_id: entity }: ListQuery): boolean {
  const isFew = (from: string, values: readonly Cell[]): boolean =>
    store.get(`SELECT 1 FROM ${from} LIMIT 1 OFFSET ${MOST_SORTED}`, values) === undefined
  return (document !== null && isFew(`memories WHERE document = (${DOCUMENT})`, [bank, document])) ||
    (entity !== null && isFew('memory_entities WHERE entity = (SELECT seq FROM entities WHERE id = ?)', [entity]))
}

const DOCUMENT = 'SELECT seq FROM documents WHERE bank = ? AND document_id = ?'

/** @param m the rows' alias; with a + where no index of the bank is to be used */
function listCondition (bank: BankRow, given: ListQuery, m: 'm' | '+m'): Condition {
  const all: Condition[] = [{ sql: `${m}.bank = ?`, values: [bank.seq] }]
  const state = given.state ?? 'valid'
  if (state !== 'valid' && state !== 'invalidated' && state !== 'all') {
    throw new WireError(400, `Invalid state '${state.slice(0, 50)}'. Must be one of: valid, invalidated`)
  }
  if (state !== 'all') all.push({ sql: `${m}.state = ?`, values: [state] })
  if (given.type !== null) all.push({ sql: 'm.fact_type = ?', values: [given.type] })
  if (given.q !== null && given.q !== '') all.push({ sql: `(m.text LIKE ? ESCAPE '\\' OR m.context LIKE ? ESCAPE '\\')`, values: [containing(given.q), containing(given.q)] })
  if (given.document_id !== null) all.push({ sql: `m.document IN (${DOCUMENT})`, values: [bank.seq, given.document_id] })
  if (given.entity_id !== null) all.push({ sql: 'm.seq IN (SELECT memory FROM memory_entities JOIN entities ON entities.seq = entity WHERE entities.id = ?)', values: [given.entity_id] })
  const consolidation = consolidationStates[given.consolidation_state ?? '']
  if (given.consolidation_state !== null && consolidation === undefined) {
    throw new WireError(400, `Invalid consolidation_state. Must be one of: ${Object.keys(consolidationStates).join(', ')}`)
  }
  if (consolidation !== undefined) all.push({ sql: consolidation, values: [] })
  const tags = tagCondition(bank.seq, given.tags, given.tags_match, { ofFew: given.document_id !== null })
  if (tags !== null) all.push(tags)
  const field = given.time_field ?? 'mentioned_at'
  if (given.start_date !== null) all.push({ sql: `m.${field} >= ?`, values: [need('start_date', given.start_date)] })
  if (given.end_date !== null) all.push({ sql: `m.${field} <= ?`, values: [need('end_date', given.end_date)] })
  return joined(all, 'AND')
}

const consolidationStates: Readonly<Record<string, string>> = {
  pending: `m.fact_type <> 'observation' AND m.consolidated_at IS NULL AND m.consolidation_failed_at IS NULL`,
  done: 'm.consolidated_at IS NOT NULL',
  failed: 'm.consolidation_failed_at IS NOT NULL'
}

function need (name: string, value: string): number {
  const ms = parseTime(value)
  if (ms === null) throw new WireError(400, `Invalid ${name}: use ISO 8601`)
  return ms
}

/** Throws the wire's 400 for what is no id, and its 404. */
function oneMemory ({ core: { store }, params }: WireCall): { readonly bank: BankRow, readonly row: ShownMemory } {
  const bank = needBank(store, params.bank_id!)
  const id = params.memory_id!
  if (!UUID.test(id)) throw new WireError(400, `Invalid memory_id: '${id.slice(0, 100)}' is not a valid UUID`)
  const row = store.get<ShownMemory>(`${SHOWN} WHERE m.bank = ? AND m.id = ?`, [bank.seq, dashed(id)])
  if (row === undefined) throw memoryNotFound(id)
  return { bank, row }
}

function dashed (id: string): string {
  return id.replaceAll('-', '').toLowerCase().replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

function memoryNotFound (id: string): WireError {
  return new WireError(404, `Memory unit '${id}' not found`)
}

const update = object({
  text: maybe(text), context: maybe(text), occurred_start: maybe(text), occurred_end: maybe(text), mentioned_at: maybe(text),
  fact_type: maybe(text), entities: maybe(listOf(text)), resolve_entities: optional(nullable(bool), true),
  state: maybe(text), reason: maybe(text)
})

function patch (call: WireCall): ReturnType<Handler> {
  const { core, body, headers, ignored } = call
  const given = readBody(body, headers, ignored, update)
  const { bank, row } = oneMemory(call)
  const edit = editOf(given)
  if (given.state !== null && given.state !== 'valid' && given.state !== 'invalidated') {
    throw new WireError(400, `Invalid state: must be 'valid' or 'invalidated'`)
  }
  const isEdit = Object.keys(edit).length > 0
  if (!isEdit && given.state === null) throw new WireError(400, 'nothing to update: name at least one field')
  const now = core.now()
  core.store.transaction(() => {
    if (given.state === 'valid' && row.state === 'invalidated') restoreMemory(core.store, row, now)
    if (isEdit) {
      if (row.state === 'invalidated' && given.state !== 'valid') {
        throw new WireError(409, `Memory unit '${row.id}' is invalidated; set its state to 'valid' first`)
      }
      editMemory(core.store, row, edit, now)
    }
    const present = shown(core.store, row.seq)
    if (given.state === 'invalidated' && present.state === 'valid') invalidateMemory(core.store, present, given.reason, now)
    core.store.run('UPDATE banks SET last_write_at = ? WHERE seq = ?', [now, bank.seq])
  })
  const next = shown(core.store, row.seq)
  return json(detail(bank.bank_id, next, sourceRows(core.store, next)))
}

function shown (store: Store, seq: number): ShownMemory {
  return store.get<ShownMemory>(`${SHOWN} WHERE m.seq = ?`, [seq])!
}

function editOf (given: ReturnType<typeof update>): MemoryEdit {
  if (given.text !== null && given.text.trim() === '') throw new WireError(400, 'text must not be empty')
  const type = given.fact_type
  if (type !== null && !(factTypes as readonly string[]).includes(type)) {
    throw new WireError(400, `Invalid fact_type: must be one of ${factTypes.join(', ')}`)
  }
  return {
    ...given.text === null ? {} : { text: given.text.trim() },
    ...given.context === null ? {} : { context: given.context },
    ...type === null ? {} : { factType: type as typeof factTypes[number] },
    ...given.occurred_start === null ? {} : { occurredStart: need('occurred_start', given.occurred_start) },
    ...given.occurred_end === null ? {} : { occurredEnd: need('occurred_end', given.occurred_end) },
    ...given.mentioned_at === null ? {} : { mentionedAt: need('mentioned_at', given.mentioned_at) },
    ...given.entities === null ? {} : { entities: given.entities.map(name => ({ text: name })) }
  }
}

function history (call: WireCall): ReturnType<Handler> {
  const { limit, offset } = readQuery(call.query, call.ignored, unpaged)
  const { row } = oneMemory(call)
  if (row.state !== 'valid') throw memoryNotFound(row.id)
  const { store } = call.core
  const { total } = store.get<{ total: number }>('SELECT count(*) AS total FROM memory_history WHERE memory = ?', [row.seq])!
  const changes = store.all<{ changed_at: number, change: string }>(
    'SELECT changed_at, change FROM memory_history WHERE memory = ? ORDER BY seq DESC LIMIT ? OFFSET ?', [row.seq, limit, offset])
  const views = changes.map(({ changed_at: at, change }) => ({ ...JSON.parse(change) as object, changed_at: wireTime(at) }))
  return listed(views, total)
}

async function clear ({ core, params, query, ignored }: WireCall): Promise<WireAnswer> {
  const { type } = readQuery(query, ignored, { type: maybe(text) })
  const bank = needBank(core.store, params.bank_id!)
  const count = await clearMemories(core, bank, { type, reopens: false })
  const kind = type === null ? '' : ` of type '${type.slice(0, 50)}'`
  return json({ success: true, message: `Cleared ${count} memory unit(s)${kind} from bank '${bank.bank_id}'`, deleted_count: count })
}
