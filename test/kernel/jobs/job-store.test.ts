import { join } from 'node:path'
import t from 'tap'
import { createJobStore } from '../../../kernel/jobs/job-store.js'
import { openDatabase } from '../../../kernel/state/database.js'
import { FakeClock } from '../../../kernel/testing/index.js'

const KIND = 'model-pull'

t.test('a job is kept through its states, and through a restart', async t => {
  const path = join(t.testdir(), 'svc.db')
  const clock = new FakeClock(Date.UTC(2026, 0, 1))
  const first = await openDatabase({ path })
  const jobs = createJobStore(first, clock)
  const job = jobs.create({ kind: KIND, target: 'org/a', data: { files: ['x'], size: 2 ** 40 } })
  t.match(job, {
    id: /^[0-9a-f]{16}$/, kind: KIND, target: 'org/a', state: 'queued', progress: null, message: /^$/, error: null,
    data: { files: ['x'], size: 2 ** 40 }, created_at: '2026-01-01T00:00:00.000Z', finished_at: null
  })
  await clock.advance(1000)
  t.match(jobs.update(job.id, { state: 'running', progress: 0.5, message: 'half' }), {
    state: 'running', progress: 0.5, message: 'half', data: { size: 2 ** 40 }, updated_at: '2026-01-01T00:00:01.000Z', finished_at: null
  })
  first.close()

  const second = await openDatabase({ path })
  t.teardown(() => second.close())
  const again = createJobStore(second, clock)
  t.match(again.get(job.id), { state: 'running', progress: 0.5 })
  t.match(again.list({ kind: KIND, unfinished: true }), [{ id: job.id }])
  await clock.advance(1000)
  t.match(again.update(job.id, { state: 'failed', error: 'no' }), { finished_at: '2026-01-01T00:00:02.000Z', error: 'no' })
  await clock.advance(1000)
  t.equal(again.update(job.id, { message: 'told' }).finished_at, '2026-01-01T00:00:02.000Z', 'the end is the first end')
  t.same(again.list({ kind: KIND, unfinished: true }), [])
  t.equal(again.update(job.id, { state: 'queued' }).finished_at, null, 'a job that is taken up again has no end')
})

t.test('lists: newest first, by kind and target; pruning keeps what runs', async t => {
  const database = await openDatabase({ path: join(t.testdir(), 'svc.db') })
  t.teardown(() => database.close())
  const clock = new FakeClock()
  const jobs = createJobStore(database, clock)
  const make = async (kind: string, target: string, state: 'running' | 'completed') => {
    await clock.advance(1)
    return jobs.create({ kind, target, state }).id
  }
  const a1 = await make(KIND, 'a', 'completed')
  const b1 = await make(KIND, 'b', 'running')
  const a2 = await make(KIND, 'a', 'completed')
  const other = await make('update', 'a', 'completed')
  t.same(jobs.list({ kind: KIND }).map(({ id }) => id), [a2, b1, a1])
  t.same(jobs.list({ kind: KIND, target: 'a' }).map(({ id }) => id), [a2, a1])
  t.same(jobs.list({ kind: KIND, limit: 1 }).map(({ id }) => id), [a2])
  t.equal(jobs.prune(KIND, 1), 1)
  t.same(jobs.list({ kind: KIND }).map(({ id }) => id), [a2, b1])
  t.ok(jobs.get(other), 'another kind')
  t.equal(jobs.get(a1), null)
  t.throws(() => jobs.update('gone', { message: 'x' }), { code: 'state.database_failed', message: /no job gone/ })
})

t.test('a database that takes nothing is a clear error', async t => {
  const database = await openDatabase({ path: join(t.testdir(), 'svc.db') })
  t.teardown(() => database.close())
  const jobs = createJobStore(database, new FakeClock())
  database.connection.exec('PRAGMA query_only = 1')
  t.throws(() => jobs.create({ kind: KIND, target: 'a' }), { code: 'state.database_failed', message: /cannot store a job/ })
})
