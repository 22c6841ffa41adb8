import type { ActivityFilter, ActivityQuery, ActivityRow } from '../contract/index.js'
import type { ActivityStore } from '../events/activity-store.js'
import type { Database } from './database.js'

const COLUMNS = [
  'ts', 'kind', 'category', 'action', 'target', 'actor', 'severity', 'outcome', 'message', 'error', 'duration_ms', 'request_id'
] as const

const DEFAULT_LIMIT = 200
const MAX_LIMIT = 5000
/** What one reading looks at, at most: ids count up, so these are no more rows than that. */
const MOST_SCANNED = 10_000

type StoredRow = Omit<ActivityRow, 'before' | 'after'> & { readonly before_json: string | null, readonly after_json: string | null }

/** A filter that is null lets everything through: one statement serves them all (see migration 2). */
const FITS = `
  (?1 IS NULL OR a.category = ?1) AND (?2 IS NULL OR a.action GLOB ?2) AND (?3 IS NULL OR a.target = ?3) AND
  (?4 IS NULL OR a.severity = ?4) AND (?5 IS NULL OR a.outcome = ?5) AND (?6 IS NULL OR a.actor = ?6) AND (?7 IS NULL OR a.kind = ?7) AND
  (?8 IS NULL OR a.message LIKE ?8 ESCAPE '~' OR a.action LIKE ?8 ESCAPE '~' OR a.target LIKE ?8 ESCAPE '~' OR
    a.actor LIKE ?8 ESCAPE '~' OR a.error LIKE ?8 ESCAPE '~')`

const SELECT = `SELECT a.id, ${COLUMNS.map(column => `a.${column}`).join(', ')}, c.before_json, c.after_json
  FROM activity a LEFT JOIN activity_change c ON c.activity_id = a.id WHERE ${FITS} AND a.id > ?9 AND a.id < ?10`

/** The database writes the JSON: a row that is handed on as text never becomes an object. */
const PAGE = `SELECT json_group_array(json_object('id', id, ${COLUMNS.map(column => `'${column}', ${column}`).join(', ')},
    'before', json(before_json), 'after', json(after_json))) AS json, count(*) AS count, min(id) AS lowest
  FROM (${SELECT} ORDER BY a.id DESC LIMIT ?11)`

/** Activity rows in the state database. Statements are prepared once. */
export function createActivityTable ({ connection, transaction }: Database): ActivityStore {
  const insertRow = connection.prepare(`INSERT INTO activity (${COLUMNS.join(', ')}) VALUES (${COLUMNS.map(() => '?').join(', ')})`)
  const insertChange = connection.prepare('INSERT INTO activity_change (activity_id, before_json, after_json) VALUES (?, ?, ?)')
  const newest = connection.prepare(`${SELECT} ORDER BY a.id DESC LIMIT ?11`)
  const page = connection.prepare(PAGE)
  const anyBetween = connection.prepare('SELECT 1 FROM activity WHERE id > ? AND id <= ? LIMIT 1')
  const oldest = connection.prepare(`${SELECT} ORDER BY a.id LIMIT ?11`)
  const nth = connection.prepare(`SELECT min(id) AS id FROM (SELECT a.id FROM activity a WHERE ${FITS} AND a.id > ?9 AND a.id < ?10 ORDER BY a.id DESC LIMIT ?11)`)
  const first = connection.prepare('SELECT min(id) AS id FROM activity')
  const lastId = connection.prepare('SELECT seq FROM sqlite_sequence WHERE name = \'activity\'')
  const deleteOld = connection.prepare('DELETE FROM activity WHERE ts < ?')
  // ids count up without reuse, so the row in place max_rows + 1 from the end bounds those to go
  const deleteBeyond = connection.prepare('DELETE FROM activity WHERE id <= (SELECT id FROM activity ORDER BY id DESC LIMIT 1 OFFSET ?)')
  const [epoch] = connection.prepare('SELECT value FROM facts WHERE name = \'activity_epoch\'').all() as { value: string }[]

  function insert (row: Omit<ActivityRow, 'id'>): number {
    const { before, after } = row
    const id = Number(insertRow.run(COLUMNS.map(column => row[column])).lastInsertRowid)
    if (before !== null || after !== null) insertChange.run([id, toJson(before), toJson(after)])
    return id
  }

  const highest = (): number => (lastId.all() as { seq: number }[])[0]?.seq ?? 0

  return {
    epoch: epoch?.value ?? '',
    lastId: highest,
    insert (rows) {
      const [row] = rows
      // one statement is a transaction by itself, at a third of the price
      const isOne = rows.length === 1 && row!.before === null && row!.after === null
      return isOne ? insert(row!) : transaction(() => rows.map(insert).at(-1) ?? 0)
    },
    list ({ since = 0, before = Number.MAX_SAFE_INTEGER, limit = DEFAULT_LIMIT, ...filter }: ActivityQuery) {
      const count = Math.min(Math.max(limit, 0), MAX_LIMIT)
      return (newest.all([...valuesOf(filter), since, before, count]) as StoredRow[]).map(fromStored)
    },
    page ({ since = 0, before = Number.MAX_SAFE_INTEGER, limit = DEFAULT_LIMIT, ...filter }: ActivityQuery) {
      const values = valuesOf(filter)
      const most = Math.min(Math.max(limit, 0), MAX_LIMIT)
      const from = isFiltered(values) ? Math.max(since, Math.min(before, highest() + 1) - 1 - MOST_SCANNED) : since
      const [found] = page.all([...values, from, before, most]) as [{ json: string, count: number, lowest: number | null }]
      const { json, count, lowest } = found
      if (count === most) return { json, count, next_before: lowest }
      return { json, count, next_before: from > since && anyBetween.all([since, from]).length > 0 ? from + 1 : null }
    },
    behind (filter, limit) {
      const [values, last] = [valuesOf(filter), highest()]
      if (limit <= 0) return last
      const from = isFiltered(values) ? Math.max(0, last - MOST_SCANNED) : 0
      const [found] = nth.all([...values, from, last + 1, Math.min(limit, MAX_LIMIT)]) as [{ id: number | null }]
      return found.id === null ? last : found.id - 1
    },
    after (since, filter, limit) {
      const [values, last] = [valuesOf(filter), highest()]
      const [lowest] = first.all() as [{ id: number | null }]
      const from = Math.max(since, (lowest.id ?? 1) - 1)
      const upTo = Math.max(since, isFiltered(values) ? Math.min(last, from + MOST_SCANNED) : last)
      const rows = (oldest.all([...values, from, upTo + 1, limit]) as StoredRow[]).map(fromStored)
      return { rows, upTo: rows.length < limit ? upTo : rows.at(-1)!.id }
    },
    prune: (before, maxRows) => transaction(() => deleteOld.run([before]).changes + deleteBeyond.run([maxRows]).changes)
  }
}

/** Without a filter every row fits, so that the limit bounds what is looked at. */
function isFiltered (values: ReadonlyArray<string | null>): boolean {
  return values.some(value => value !== null)
}

/** In the order of `FITS`. */
function valuesOf ({ category, action, target, severity, outcome, actor, kind, search }: ActivityFilter): Array<string | null> {
  // only * and ? are ours; SQLite's GLOB has bracket expressions besides
  const glob = action?.replaceAll('[', '[[]')
  const like = search === undefined ? undefined : `%${search.replace(/[%_~]/g, '~$&')}%`
  return [category, glob, target, severity, outcome, actor, kind, like].map(value => value ?? null)
}

function toJson (value: unknown): string | null {
  return value === null || value === undefined ? null : JSON.stringify(value)
}

function fromStored ({ before_json: before, after_json: after, ...row }: StoredRow): ActivityRow {
  return { ...row, before: before === null ? null : JSON.parse(before), after: after === null ? null : JSON.parse(after) }
}
