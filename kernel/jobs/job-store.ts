import { randomBytes } from 'node:crypto'
import { isSvcError, messageOf, svcError, type Clock, type Job, type JobPatch, type JobState, type JobStore } from '../contract/index.js'
import type { Database } from '../state/database.js'

type StoredJob = Omit<Job, 'data'> & { readonly data_json: string }

const COLUMNS = ['id', 'kind', 'target', 'state', 'progress', 'message', 'error', 'data_json', 'created_at', 'updated_at', 'finished_at'] as const
const FINAL: ReadonlySet<JobState> = new Set(['completed', 'failed', 'cancelled'])
const DEFAULT_LIMIT = 200

/** Rows of jobs in the state database. Statements are prepared once. */
export function createJobStore ({ connection, transaction }: Database, clock: Clock): JobStore {
  const list = COLUMNS.join(', ')
  const insert = connection.prepare(`INSERT INTO jobs (${list}) VALUES (${COLUMNS.map(() => '?').join(', ')})`)
  const replace = connection.prepare(`UPDATE jobs SET ${COLUMNS.slice(3).map(column => `${column} = ?`).join(', ')} WHERE id = ?`)
  const one = connection.prepare(`SELECT ${list} FROM jobs WHERE id = ?`)
  const some = connection.prepare(`SELECT ${list} FROM jobs
    WHERE kind = ? AND (? IS NULL OR target = ?) AND (? = 0 OR finished_at IS NULL) ORDER BY created_at DESC, id DESC LIMIT ?`)
  const prune = connection.prepare(`DELETE FROM jobs WHERE finished_at IS NOT NULL AND kind = ? AND id NOT IN
    (SELECT id FROM jobs WHERE kind = ? AND finished_at IS NOT NULL ORDER BY created_at DESC, id DESC LIMIT ?)`)
  const now = (): string => new Date(clock.now()).toISOString()
  const get = (id: string): Job | null => {
    const [row] = one.all([id]) as StoredJob[]
    return row === undefined ? null : fromStored(row)
  }
  return {
    create: ({ kind, target, state = 'queued', message = '', data = {} }) => attempt(() => {
      const at = now()
      const finished = FINAL.has(state) ? at : null
      const id = randomBytes(8).toString('hex')
      const told = { progress: null, message, error: null, data }
      const job: Job = { id, kind, target, state, ...told, created_at: at, updated_at: at, finished_at: finished }
      insert.run(valuesOf(job))
      return job
    }),
    update: (id, patch) => attempt(() => transaction(() => {
      const job = get(id)
      if (job === null) throw svcError('state.database_failed', `there is no job ${id} in the state database`)
      const next = patched(job, patch, now())
      replace.run([...valuesOf(next).slice(3), id])
      return next
    })),
    get: id => attempt(() => get(id)),
    list: ({ kind, target = null, unfinished = false, limit = DEFAULT_LIMIT }) => attempt(() =>
      (some.all([kind, target, target, unfinished ? 1 : 0, limit]) as StoredJob[]).map(fromStored)),
    prune: (kind, keep) => attempt(() => prune.run([kind, kind, keep]).changes)
  }
}

function patched (job: Job, patch: JobPatch, at: string): Job {
  const state = patch.state ?? job.state
  return { ...job, ...patch, state, updated_at: at, finished_at: FINAL.has(state) ? job.finished_at ?? at : null }
}

function valuesOf ({ data, ...rest }: Job): Array<string | number | null> {
  const stored: StoredJob = { ...rest, data_json: JSON.stringify(data) }
  return COLUMNS.map(column => stored[column])
}

function fromStored ({ data_json: data, ...job }: StoredJob): Job {
  return { ...job, data: JSON.parse(data) as Job['data'] }
}

function attempt<T> (work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (isSvcError(error)) throw error
    throw svcError('state.database_failed', `the state database cannot store a job: ${messageOf(error)}; is its disk full?`, { cause: error })
  }
}
