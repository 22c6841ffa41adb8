import { memoriesAround, MOST_AROUND } from './around.js'
import { edgesOf, type Edge } from './graph.js'
import { joined, tagCondition, tagModes, type Condition } from './tag-filter.js'
import { chunkId, namesOf, SHOWN, type ShownMemory } from './view.js'
import { containing } from '../store/like.js'
import { needBank } from '../store/bank-table.js'
import { BANK, json, type WireAnswer, type WireCall, type WireRoute } from '../wire/answer.js'
import { int, listOf, maybe, oneOf, optional, pageLimit, readQuery, text } from '../wire/shape.js'
import { wireTime } from '../wire/times.js'

export const routes: readonly WireRoute[] = [{ method: 'GET', path: `${BANK}/graph`, handler: graph }]

const LONGEST_LABEL = 30
const colors: Readonly<Record<Edge['kind'], string>> = {
  entity: '#ffd700', document: '#66bb6a', tag: '#ab47bc', temporal: '#00bcd4', semantic: '#ff69b4'
}

/** The newest memories that hold what is asked for, or those of them that are around one, and what ties them. */
async function graph ({ core, params, query, ignored, signal }: WireCall): Promise<WireAnswer> {
  const given = readQuery(query, ignored, {
    type: maybe(text), limit: pageLimit(1000), q: maybe(text), tags: maybe(listOf(text)),
    tags_match: optional(oneOf(...tagModes), 'all_strict'), document_id: maybe(text), chunk_id: maybe(text),
    // beyond the wire: a server names them in `x-ignored-params`
    around: maybe(text), depth: optional(int({ min: 0, max: 2 }), 1)
  }, ['tags'])
  const bank = needBank(core.store, params.bank_id!)
  const all: (Condition | null)[] = [tagCondition(bank.seq, given.tags, given.tags_match)]
  if (given.type !== null) all.push({ sql: 'm.fact_type = ?', values: [given.type] })
  if (given.q !== null && given.q !== '') all.push({ sql: `m.text LIKE ? ESCAPE '\\'`, values: [containing(given.q)] })
  if (given.document_id !== null) all.push({ sql: 'd.document_id = ?', values: [given.document_id] })
  if (given.chunk_id !== null) {
    all.push({ sql: `? || '_' || d.document_id || '_' || c.chunk_index = ?`, values: [bank.bank_id, given.chunk_id] })
  }
  const meant = (m: 'm' | '+m'): Condition =>
    joined([{ sql: `${m}.bank = ? AND ${m}.state = 'valid'`, values: [bank.seq] }, ...all.filter(each => each !== null)], 'AND')
  const { sql, values } = meant('m')
  const { around: id, depth, limit } = given
  const part = id === null ? null : await memoriesAround(core, bank, { id, depth, most: Math.min(limit, MOST_AROUND) }, signal)
  const [place, places] = part === null ? ['', []] : [' AND m.seq IN (SELECT value FROM json_each(?))', [JSON.stringify(part)]]
  // + has the few around one found by their numbers, and not by walking through the bank
  const rows = core.store.all<ShownMemory>(
    `${SHOWN} WHERE ${meant(part === null ? 'm' : '+m').sql}${place} ORDER BY m.mentioned_at DESC, m.seq DESC LIMIT ?`, [...values, ...places, given.limit])
  // an index alone counts them where nothing is said of documents
  const shown = given.document_id === null && given.chunk_id === null ? 'SELECT 1 FROM memories m' : SHOWN
  const { total } = core.store.get<{ total: number }>(`SELECT count(*) AS total FROM (${shown} WHERE ${sql})`, values)!
  return json({
    nodes: rows.map(row => ({ data: nodeOf(row) })),
    edges: (await edgesOf(core, rows, signal)).map(edge => ({ data: edgeOf(edge) })),
    table_rows: rows.map(row => tableRow(bank.bank_id, row)), total_units: total, limit: given.limit
  })
}

function nodeOf (row: ShownMemory) {
  const names = namesOf(row)
  return {
    id: row.id, label: row.text.length > LONGEST_LABEL ? `${row.text.slice(0, LONGEST_LABEL)}...` : row.text, text: row.text,
    date: wireTime(row.occurred_start ?? row.mentioned_at) ?? '', context: row.context ?? '', entities: names.join(', '),
    color: names.length > 1 ? '#42a5f5' : '#90caf9'
  }
}

function edgeOf ({ source, target, kind, weight, name }: Edge) {
  return {
    id: `${source}-${target}-${kind}${name === '' ? '' : `-${name}`}`, source, target, linkType: kind, weight, entityName: name,
    color: colors[kind], lineStyle: kind === 'temporal' ? 'dashed' : 'solid'
  }
}

function tableRow (bankId: string, row: ShownMemory) {
  return {
    id: row.id, text: row.text, context: row.context ?? '', occurred_start: wireTime(row.occurred_start),
    occurred_end: wireTime(row.occurred_end), mentioned_at: wireTime(row.mentioned_at),
    date: wireTime(row.occurred_start ?? row.mentioned_at), entities: namesOf(row).join(', '), document_id: row.document_id,
    chunk_id: chunkId(bankId, row.document_id, row.chunk_index), fact_type: row.fact_type, tags: JSON.parse(row.tags) as string[],
    created_at: wireTime(row.created_at), proof_count: row.proof_count
  }
}
