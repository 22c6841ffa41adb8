import { entitiesAround, MOST_AROUND } from './around.js'
import { groupsCondition, joined, readTagGroups, tagCondition, tagModes, type Condition } from './tag-filter.js'
import { needBank } from '../store/bank-table.js'
import { containing, literal } from '../store/like.js'
import type { Store } from '../store/store.js'
import { BANK, json, WireError, type Handler, type WireAnswer, type WireCall, type WireRoute } from '../wire/answer.js'
import { int, listOf, maybe, oneOf, optional, pageLimit, readQuery, text } from '../wire/shape.js'
import { wireTime } from '../wire/times.js'

export const routes: readonly WireRoute[] = [
  { method: 'GET', path: `${BANK}/tags`, handler: tags },
  { method: 'GET', path: `${BANK}/entities`, handler: entities },
  { method: 'GET', path: `${BANK}/entities/graph`, handler: graph },
  { method: 'GET', path: `${BANK}/entities/{entity_id}`, handler: entity },
  {
    method: 'POST', path: `${BANK}/entities/{entity_id}/regenerate`,
    handler: () => json({ detail: 'This endpoint is deprecated. Entity observations are no longer supported.' }, 410)
  }
]

const page = { limit: pageLimit(100, 0), offset: optional(int({ min: 0 }), 0) }
const tagFilter = { tags: maybe(listOf(text)), tags_match: optional(oneOf(...tagModes), 'any'), tag_groups: maybe(text) }

/** `*` of a pattern stands for anything; without one the words may stand anywhere. */
function patternOf (q: string | null): string {
  if (q === null) return '%'
  return q.includes('*') ? literal(q).replaceAll('*', '%') : containing(q)
}

function tags ({ core: { store }, params, query, ignored }: WireCall): ReturnType<Handler> {
  const { q, source, limit, offset } = readQuery(query, ignored, {
    q: maybe(text), source: optional(oneOf('memories', 'mental_models'), 'memories'), ...page
  })
  const bank = needBank(store, params.bank_id!)
  const from = source === 'memories'
    ? `(SELECT t.tag AS tag, m.seq FROM memory_tags t JOIN memories m ON m.seq = t.memory WHERE t.bank = ? AND m.state = 'valid')`
    : '(SELECT value AS tag FROM mental_models, json_each(mental_models.tags) WHERE mental_models.bank = ?)'
  const has = source === 'memories' || store.get(`SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'mental_models'`) !== undefined
  if (!has) return json({ items: [], total: 0, limit, offset })
  const meant = `FROM ${from} WHERE tag LIKE ? ESCAPE '\\'`
  const values = [bank.seq, patternOf(q)]
  const { total } = store.get<{ total: number }>(`SELECT count(DISTINCT tag) AS total ${meant}`, values)!
  const items = store.all<{ tag: string, count: number }>(
    `SELECT tag, count(*) AS count ${meant} GROUP BY tag ORDER BY count DESC, tag LIMIT ? OFFSET ?`, [...values, limit, offset])
  return json({ items, total, limit, offset })
}

interface EntityRow {
  readonly id: string
  readonly name: string
  readonly mentions: number
  readonly first_seen: number | null
  readonly last_seen: number | null
}

/** Entities with their mentions in valid memories that hold the condition. */
function entityRows (
  store: Store, { sql, values }: Condition, rest: string, restValues: readonly (string | number)[]
): readonly EntityRow[] {
  return store.all<EntityRow>(
    `SELECT e.id AS id, e.name AS name, count(m.seq) AS mentions, min(coalesce(m.mentioned_at, m.created_at)) AS first_seen,
       max(coalesce(m.mentioned_at, m.created_at)) AS last_seen
     FROM entities e JOIN memory_entities me ON me.entity = e.seq JOIN memories m ON m.seq = me.memory AND m.state = 'valid'
     WHERE ${sql} GROUP BY e.seq ${rest}`, [...values, ...restValues])
}

interface TagQuery {
  readonly tags: readonly string[] | null
  readonly tags_match: typeof tagModes[number]
  readonly tag_groups: string | null
}

function filterOf (store: Store, bank: number, given: TagQuery, ignored: Set<string>): Condition {
  const conditions = [{ sql: 'e.bank = ?', values: [bank] }, tagCondition(bank, given.tags, given.tags_match),
    groupsCondition(store, bank, readTagGroups(given.tag_groups, ignored))]
  return joined(conditions.filter(each => each !== null), 'AND')
}

function shown ({ id, name, mentions, first_seen: first, last_seen: last }: EntityRow) {
  const [firstSeen, lastSeen] = [wireTime(first), wireTime(last)]
  return { id, canonical_name: name, mention_count: mentions, first_seen: firstSeen, last_seen: lastSeen, metadata: {} }
}

function entities ({ core: { store }, params, query, ignored }: WireCall): ReturnType<Handler> {
  const given = readQuery(query, ignored, { ...page, ...tagFilter }, ['tags'])
  const bank = needBank(store, params.bank_id!)
  const filter = filterOf(store, bank.seq, given, ignored)
  const rows = entityRows(store, filter, 'ORDER BY mentions DESC, e.seq DESC LIMIT ? OFFSET ?', [given.limit, given.offset])
  const { total } = store.get<{ total: number }>(
    `SELECT count(*) AS total FROM entities e WHERE e.bank = ? AND EXISTS (SELECT 1 FROM memory_entities me
     JOIN memories m ON m.seq = me.memory AND m.state = 'valid' WHERE me.entity = e.seq AND ${filter.sql})`, [bank.seq, ...filter.values])!
  return json({ items: rows.map(shown), total, limit: given.limit, offset: given.offset })
}

function entity ({ core: { store }, params, query, ignored }: WireCall): ReturnType<Handler> {
  const given = readQuery(query, ignored, tagFilter, ['tags'])
  const bank = needBank(store, params.bank_id!)
  const filter = joined([filterOf(store, bank.seq, given, ignored), { sql: 'e.id = ?', values: [params.entity_id!] }], 'AND')
  const [row] = entityRows(store, filter, '', [])
  if (row === undefined) throw new WireError(404, `Entity ${params.entity_id!.slice(0, 100)} not found`)
  return json({ ...shown(row), observations: [] })
}

const EDGE_COLOR = '#ffd700'

/** Entities that are named together: the most frequent ones, or those around one. */
async function graph ({ core: { store }, params, query, ignored, signal }: WireCall): Promise<WireAnswer> {
  const given = readQuery(query, ignored, {
    limit: pageLimit(1000), min_count: optional(int({ min: 1 }), 1), ...tagFilter,
    // beyond the wire: a server names them in `x-ignored-params`
    around: maybe(text), depth: optional(int({ min: 0, max: 2 }), 1)
  }, ['tags'])
  const bank = needBank(store, params.bank_id!)
  const { around: id, depth, limit } = given
  const part = id === null ? null : await entitiesAround(store, bank, { id, depth, most: Math.min(limit, MOST_AROUND) }, signal)
  const within = (entity: string): Condition[] =>
    part === null ? [] : [{ sql: `${entity} IN (SELECT value FROM json_each(?))`, values: [JSON.stringify(part.entities)] }]
  const meant = filterOf(store, bank.seq, given, ignored)
  const filter = joined([meant, ...within('e.seq')], 'AND')
  // from the memories that are meant, and not from each entity with each: CROSS keeps to that order, and + to no index
  const pairs = joined([meant, ...within('+e.seq'), ...within('+e2.seq')], 'AND')
  const [from, join, memories] = part === null ? ['memory_entities a', 'JOIN', []]
    : ['json_each(?) AS wanted CROSS JOIN memory_entities a ON a.memory = wanted.value', 'CROSS JOIN', [JSON.stringify(part.memories)]]
  const rows = store.all<{ source: string, target: string, weight: number, last: number | null }>(
    `SELECT e.id AS source, e2.id AS target, count(*) AS weight, max(m.mentioned_at) AS last
     FROM ${from} ${join} memory_entities b ON b.memory = a.memory AND b.entity > a.entity
     ${join} entities e ON e.seq = a.entity ${join} entities e2 ON e2.seq = b.entity
     ${join} memories m ON m.seq = a.memory AND m.state = 'valid' WHERE ${pairs.sql}
     GROUP BY e.seq, e2.seq HAVING count(*) >= ? ORDER BY weight DESC LIMIT ?`, [...memories, ...pairs.values, given.min_count, given.limit])
  const nodes = entityRows(store, filter, 'ORDER BY mentions DESC, e.seq LIMIT ?', [given.limit])
  const ids = new Set(nodes.map(({ id }) => id))
  const between = rows.filter(({ source, target }) => ids.has(source) && ids.has(target))
  const edges = between.map(({ source, target, weight, last }) => ({
    data: {
      id: `${source}-${target}`, source, target, linkType: 'cooccurrence', weight, color: EDGE_COLOR, lineStyle: 'solid',
      lastCooccurred: wireTime(last)
    }
  }))
  return json({
    nodes: nodes.map(({ id, name, mentions }) => (
      { data: { id, label: name, mentionCount: mentions, color: mentions > 1 ? '#42a5f5' : '#90caf9' } })),
    edges, total_entities: nodes.length, total_edges: edges.length, limit: given.limit
  })
}
