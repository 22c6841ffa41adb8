import { randomBytes } from 'node:crypto'
import {
  isSvcError, messageOf, svcError, type ApprovalDecision, type ApprovalOutcome, type ApprovalRow, type ApprovalRows,
  type Clock, type NewApproval
} from '../contract/index.js'
import type { Database } from './database.js'

interface StoredRow extends Omit<ApprovalRow, 'args' | 'secrets' | 'unwritten' | 'primary' | 'private' | 'result' | 'error'> {
  readonly args_json: string
  readonly secrets_json: string
  readonly unwritten_json: string
  readonly primary_argument: string | null
  readonly private: number
  readonly result_json: string | null
  readonly error_json: string | null
}

const COLUMNS = [
  'seq', 'id', 'server', 'tool', 'args_json', 'secrets_json', 'unwritten_json', 'primary_argument', 'actor', 'agent', 'private', 'state', 'hit_count',
  'enqueued_at', 'decided_at', 'decided_by', 'reason', 'finished_at', 'result_json', 'error_json'
] as const
const OVER = 'state NOT IN (\'pending\', \'approved\')'

/** Approvals in the state database. Statements are prepared once. */
export function createApprovalTable ({ connection, transaction }: Database, clock: Clock): ApprovalRows {
  const select = `SELECT ${COLUMNS.join(', ')} FROM approvals`
  const insert = connection.prepare(`INSERT INTO approvals
    (id, server, tool, dedup_key, args_json, secrets_json, unwritten_json, primary_argument, actor, agent, private, state, hit_count, enqueued_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', 1, ?)`)
  const repeat = connection.prepare('UPDATE approvals SET hit_count = hit_count + 1 WHERE id = ?')
  const one = connection.prepare(`${select} WHERE id = ?`)
  const same = connection.prepare(`${select} WHERE server = ? AND tool = ? AND dedup_key = ? AND state = 'pending'`)
  const all = connection.prepare(`${select} WHERE seq < ? ORDER BY seq DESC LIMIT ?`)
  const some = connection.prepare(`${select} WHERE state = ? AND seq < ? ORDER BY seq DESC LIMIT ?`)
  const count = connection.prepare(`SELECT count(*) AS count FROM approvals
    WHERE state = 'pending' AND (?1 IS NULL OR actor = ?1)`)
  const decide = connection.prepare(`UPDATE approvals SET state = ?, decided_at = ?, decided_by = ?, reason = ?, args_json = coalesce(?, args_json)
    WHERE id = ? AND state = 'pending'`)
  const finish = connection.prepare(`UPDATE approvals SET state = ?, finished_at = ?, args_json = ?, result_json = ?, error_json = ?
    WHERE id = ? AND state = 'approved'`)
  const prune = connection.prepare(`DELETE FROM approvals WHERE ${OVER} AND seq NOT IN
    (SELECT seq FROM approvals WHERE ${OVER} ORDER BY seq DESC LIMIT ?)`)
  const now = (): string => new Date(clock.now()).toISOString()
  const first = (rows: unknown[]): ApprovalRow | null => rows[0] === undefined ? null : fromStored(rows[0] as StoredRow)

  return {
    ask: row => attempt(() => transaction(() => {
      const before = first(same.all([row.server, row.tool, row.key]))
      const id = before?.id ?? randomBytes(16).toString('hex')
      if (before === null) insert.run(valuesOf(row, id, now()))
      else repeat.run([id])
      return { row: first(one.all([id]))!, isNew: before === null }
    })),
    waiting: (server, tool, key) => attempt(() => first(same.all([server, tool, key]))),
    get: id => attempt(() => first(one.all([id]))),
    list: ({ state, before = Number.MAX_SAFE_INTEGER, limit }) => attempt(() => {
      const rows = state === undefined ? all.all([before, limit]) : some.all([state, before, limit])
      return (rows as StoredRow[]).map(fromStored)
    }),
    pending: (actor = undefined) => attempt(() => (count.all([actor ?? null]) as [{ count: number }])[0].count),
    decide: (id, { state, by, reason = null, args }: ApprovalDecision) => attempt(() => lasting(() => transaction(() => {
      const { changes } = decide.run([state, now(), by, reason, args === undefined ? null : JSON.stringify(args), id])
      return changes === 0 ? null : first(one.all([id]))
    }))),
    finish: (id, { state, args, result, error }: ApprovalOutcome) => attempt(() => transaction(() => {
      const { changes } = finish.run([state, now(), JSON.stringify(args), toJson(result), toJson(error), id])
      return changes === 0 ? null : first(one.all([id]))
    })),
    prune: keep => attempt(() => prune.run([keep]).changes)
  }

  /** A power failure may take back what was committed last; what is about to run must not be pending once more after it. */
  function lasting<T> (work: () => T): T {
    connection.exec('PRAGMA synchronous = FULL')
    try {
      return work()
    } finally {
      connection.exec('PRAGMA synchronous = NORMAL')
    }
  }
}

function valuesOf (row: NewApproval, id: string, at: string): Array<string | number | null> {
  const { server, tool, key, args, secrets, unwritten, primary, actor, agent } = row
  const texts = [args, secrets, unwritten].map(value => JSON.stringify(value))
  return [id, server, tool, key, ...texts, primary, actor, agent, row.private ? 1 : 0, at]
}

function toJson (value: unknown): string | null {
  return value === null || value === undefined ? null : JSON.stringify(value)
}

function fromStored (stored: StoredRow): ApprovalRow {
  const {
    args_json: args, secrets_json: secrets, unwritten_json: unwritten, primary_argument: primary, private: isPrivate,
    result_json: result, error_json: error, ...row
  } = stored
  return {
    ...row,
    args: JSON.parse(args) as ApprovalRow['args'],
    secrets: JSON.parse(secrets) as readonly string[],
    unwritten: JSON.parse(unwritten) as readonly string[],
    primary,
    private: isPrivate === 1,
    result: result === null ? null : JSON.parse(result) as unknown,
    error: error === null ? null : JSON.parse(error) as ApprovalRow['error']
  }
}

function attempt<T> (work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (isSvcError(error)) throw error
    throw svcError('state.database_failed', `the state database cannot store an approval: ${messageOf(error)}; is its disk full?`, { cause: error })
  }
}
