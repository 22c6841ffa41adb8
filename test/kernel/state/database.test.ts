import { fork } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { openSqlFile, type ActivityQuery, type ActivityRow } from '../../../kernel/contract/index.js'
import { createActivityTable } from '../../../kernel/state/activity-table.js'
import { createApprovalTable } from '../../../kernel/state/approval-table.js'
import { openDatabase } from '../../../kernel/state/database.js'
import { migrations } from '../../../kernel/state/migrations/index.js'
import { createSystemClock } from '../../../kernel/state/system-clock.js'

t.test('opening makes the file, with its pragmas and tables; closing folds the log in', async t => {
  const path = join(t.testdir(), 'state/svc.db')
  const before = process.umask(0o022)
  t.teardown(() => process.umask(before))
  const db = await openDatabase({ path })
  const modes = (): number[] => ['', '-wal', '-shm'].map(end => statSync(path + end).mode & 0o777)
  t.same(modes(), [0o600, 0o600, 0o600], 'nobody else reads what was asked')
  const pragma = (name: string): unknown => Object.values(db.connection.prepare(`PRAGMA ${name}`).get() as object)[0]
  t.match([pragma('journal_mode'), pragma('synchronous'), pragma('foreign_keys'), pragma('busy_timeout')], ['wal', 1, 1, 5000])
  t.throws(() => db.connection.prepare('SELECT * FROM nothing').all(), { code: 'SQLITE_ERROR' })
  t.same(db.connection.prepare('SELECT count(*) AS n FROM jobs').all(), [{ n: 0 }])
  db.close()
  db.close()
  t.equal(statSync(`${path}-wal`).size, 0)
  for (const end of ['', '-wal', '-shm']) chmodSync(path + end, 0o644)
  const again = await openDatabase({ path })
  t.match(again.connection.prepare('SELECT version, name FROM schema_migrations').all(), migrations.map(({ version, name }) => ({ version, name })))
  t.same(modes(), [0o600, 0o600, 0o600], 'those of an earlier release, too')
  again.close()
})

t.test('a transaction that throws leaves nothing behind', async t => {
  const db = await openDatabase({ path: join(t.testdir(), 'svc.db') })
  t.teardown(() => { db.close() })
  db.connection.exec('CREATE TABLE x (n INTEGER)')
  t.equal(db.transaction(connection => { connection.exec('INSERT INTO x VALUES (1)'); return 'done' }), 'done')
  t.throws(() => db.transaction(connection => { connection.exec('INSERT INTO x VALUES (2)'); throw new Error('no') }), { message: 'no' })
  t.throws(() => db.transaction(connection => { connection.exec('INSERT INTO nothing VALUES (2)') }), { code: 'SQLITE_ERROR' })
  t.same(db.connection.prepare('SELECT n FROM x').all(), [{ n: 1 }])
})

t.test('migrations run once each, and a changed one is refused', async t => {
  const path = join(t.testdir(), 'svc.db')
  const one = { version: 1, name: 'one', sql: 'CREATE TABLE a (n)' }
  const two = { version: 2, name: 'two', sql: 'CREATE TABLE b (n); INSERT INTO b VALUES (1)' }
  const open = async (...steps: (typeof one)[]) => { (await openDatabase({ path, migrations: steps })).close() }
  await open(one)
  await open({ ...one, sql: 'CREATE  TABLE a\n(n)' })
  const broken = { ...two, sql: 'CREATE TABLE b (n); INSERT INTO b VALUES (1); INSERT INTO nothing VALUES (1)' }
  await t.rejects(open(one, broken), { code: 'state.database_failed' })
  await open(one, two)
  await open(one, two)
  await t.rejects(open(one), { code: 'state.database_too_new', message: /has version 2 and this release knows versions up to 1/ })
  await t.rejects(open({ ...one, sql: 'CREATE TABLE a (m)' }, two), { code: 'state.database_failed', message: /step 1 \(one\)/ })
  const db = await openDatabase({ path, migrations: [one, two] })
  t.same(db.connection.prepare('SELECT count(*) AS n FROM b').all(), [{ n: 1 }], 'a step that failed left nothing, and then ran once')
  db.close()
})

t.test('a file that is no database', async t => {
  const path = join(t.testdir(), 'svc.db')
  writeFileSync(path, 'x'.repeat(5000))
  await t.rejects(openDatabase({ path }), { code: 'state.database_failed', message: /move the file away/ })
  await t.rejects(openDatabase({ path: '/dev/null/svc.db' }), { code: 'state.database_failed' })
})

t.test('a process killed inside of a transaction leaves a good database', async t => {
  const path = join(t.testdir(), 'svc.db')
  const child = fork(join(import.meta.dirname, 'database-child.js'), [path], { execArgv: [], silent: true })
  t.teardown(() => child.kill('SIGKILL'))
  await once(child, 'message')
  child.kill('SIGKILL')
  await once(child, 'exit')
  const db = await openDatabase({ path })
  t.match(db.connection.prepare('PRAGMA integrity_check').get(), { integrity_check: 'ok' })
  t.same(db.connection.prepare('SELECT id FROM jobs').all(), [{ id: 'committed' }])
  db.close()
})

t.test('a plugin\'s database is the user\'s alone, is brought to the form of the release, and one of a newer release is refused untouched', async t => {
  const path = join(t.testdir(), 'plugin/own.db')
  const before = process.umask(0o022)
  t.teardown(() => process.umask(before))
  const first = 'CREATE TABLE notes (text TEXT NOT NULL) STRICT'
  const old = await openSqlFile({ path, form: [first], durability: 'full' })
  old.run('INSERT INTO notes VALUES (?)', ['one\0two'])
  const modes = [path, `${path}-wal`, `${path}-shm`, dirname(path)].map(place => statSync(place).mode & 0o777)
  t.strictSame(modes, [0o600, 0o600, 0o600, 0o700])
  old.close()
  t.equal(statSync(`${path}-wal`).size, 0, 'the log is folded in')

  const versions = [first, 'ALTER TABLE notes ADD COLUMN kind TEXT']
  const file = await openSqlFile({ path, form: versions, durability: 'normal', pragmas: ['secure_delete = ON'] })
  t.teardown(() => file.close())
  t.strictSame(file.all('SELECT text, kind FROM notes'), [{ text: 'onetwo', kind: null }])
  const [bytes] = file.all<{ readonly it: ArrayBuffer }>('SELECT ? AS it', [Buffer.from([0, 1, 255])])
  t.strictSame([...new Uint8Array(bytes!.it)], [0, 1, 255], 'a buffer alone is a value like others')
  t.throws(() => file.transaction(() => {
    file.transaction(() => file.run('DELETE FROM notes'))
    throw new Error('no')
  }), { message: 'no' })
  t.match(file.get('SELECT count(*) AS n FROM notes'), { n: 1 }, 'a transaction inside of another is part of it')
  await t.rejects(openSqlFile({ path, form: [first], durability: 'full' }), { message: 'a newer release wrote it' })
  await t.rejects(openSqlFile({ path: join(dirname(path), 'bad.db'), form: [first, 'NONSENSE'], durability: 'full' }), { code: 'SQLITE_ERROR' })
  const half = await openSqlFile({ path: join(dirname(path), 'bad.db'), form: versions, durability: 'full' })
  t.strictSame(half.all('SELECT * FROM notes'), [], 'a version that failed is tried again, those before it stay')
  half.close()
})

t.test('the log of a plugin\'s database is emptied on demand, and not waited for while another connection reads', async t => {
  const path = join(t.testdir(), 'own.db')
  const options = { path, form: ['CREATE TABLE notes (text TEXT NOT NULL) STRICT'], durability: 'normal', pragmas: ['secure_delete = ON'] } as const
  const file = await openSqlFile({ ...options, lockWaitMs: 2 ** 31 - 1 })
  const reader = await openSqlFile(options)
  t.teardown(() => [reader, file].forEach(each => each.close()))
  const has = (): boolean => [path, `${path}-wal`].some(part => readFileSync(part).includes('qzmvorlath'))
  file.run('INSERT INTO notes VALUES (?)', ['qzmvorlath'])
  reader.exec('BEGIN')
  t.match(reader.all('SELECT text FROM notes'), { length: 1 })
  file.run('DELETE FROM notes')
  t.notOk(file.foldLog())
  t.match(file.get('PRAGMA busy_timeout'), { timeout: 2 ** 31 - 1 }, 'others wait as before')
  t.ok(has())
  reader.exec('COMMIT')
  t.ok(file.foldLog())
  t.notOk(has())
  t.equal(statSync(`${path}-wal`).size, 0)
})

t.test('old activity rows go with what they changed, oldest first', async t => {
  const db = await openDatabase({ path: join(t.testdir(), 'svc.db') })
  t.teardown(() => { db.close() })
  const table = createActivityTable(db)
  const row = (over: Partial<ActivityRow>): Omit<ActivityRow, 'id'> => ({
    ts: '2026-01-01T00:00:00.000Z', kind: 'action', category: 'slot', action: 'slot.create', target: 'agent', actor: 'dashboard', severity: 'ok',
    outcome: 'ok', message: '', before: null, after: { port: 8081, text: 'ü "q"' }, error: null, duration_ms: 12, request_id: null, ...over
  })
  t.equal(table.lastId(), 0)
  t.equal(table.insert([row({})]), 1)
  t.equal(table.insert([row({ category: 'model', ts: '2026-01-02T00:00:00.000Z', outcome: null })]), 2)
  t.same(table.list({}), [{ ...row({ category: 'model', ts: '2026-01-02T00:00:00.000Z', outcome: null }), id: 2 }, { ...row({}), id: 1 }])
  t.same(table.list({ category: 'slot' }).map(({ id }) => id), [1])
  t.same(table.list({ since: 1 }).map(({ id }) => id), [2])
  t.same(table.list({ limit: 1 }).map(({ id }) => id), [2])
  t.equal(table.prune('2026-01-01T12:00:00.000Z', 100), 1, 'old rows go')
  table.insert(Array.from({ length: 10 }, () => row({ ts: '2026-01-03T00:00:00.000Z' })))
  t.equal(table.prune('2026-01-01T12:00:00.000Z', 4), 7, 'rows beyond the cap go, oldest first')
  t.same(table.list({}).map(({ id }) => id), [12, 11, 10, 9])
  t.equal(table.prune('2026-01-01T12:00:00.000Z', 4), 0)
  t.same(db.connection.prepare('SELECT count(*) AS n FROM activity_change').all(), [{ n: 4 }], 'what they changed goes with them')
  t.equal(table.lastId(), 12)
})

t.test('activity rows are filtered by field, text and glob', async t => {
  const db = await openDatabase({ path: join(t.testdir(), 'svc.db') })
  t.teardown(() => { db.close() })
  const table = createActivityTable(db)
  const base = {
    ts: '2026-01-01T00:00:00.000Z', kind: 'action', category: 'slot', action: 'slot.create', target: 'agent', actor: 'dashboard', severity: 'ok',
    outcome: 'ok', message: '', before: null, after: null, error: null, duration_ms: null, request_id: null
  } as const
  table.insert([
    base,
    { ...base, action: 'slot.edit_config', actor: 'mcp:helper', message: 'half of it: 50% [x] a_b ~' },
    { ...base, category: 'model', action: 'model.delete', target: 'm1', severity: 'error', outcome: 'error', error: 'Disk FULL' },
    { ...base, kind: 'event', action: 'slot.state', actor: 'system', severity: 'info', outcome: null }
  ])
  const cases: readonly (readonly [ActivityQuery, readonly number[]])[] = [
    [{ category: 'model' }, [3]], [{ action: 'slot.*' }, [4, 2, 1]], [{ action: 'slot.?tate' }, [4]], [{ action: 'slot.[c]*' }, []],
    [{ target: 'm1' }, [3]], [{ severity: 'ok' }, [2, 1]], [{ outcome: 'error' }, [3]], [{ actor: 'mcp:helper' }, [2]], [{ kind: 'event' }, [4]],
    [{ search: 'disk full' }, [3]], [{ search: '50%' }, [2]], [{ search: '%' }, [2]], [{ search: 'a_b' }, [2]], [{ search: '~' }, [2]], [{ search: 'xyz' }, []],
    [{ search: 'EDIT' }, [2]], [{ category: 'slot', kind: 'action', severity: 'ok', limit: 1 }, [2]], [{ before: 3 }, [2, 1]], [{ since: 1, before: 4 }, [3, 2]]
  ]
  for (const [query, ids] of cases) {
    t.same(table.list(query).map(({ id }) => id), ids, JSON.stringify(query))
    const { since = 0, before = 99, limit, ...filter } = query
    if (limit === undefined) t.same(table.after(since, filter, 9).rows.map(({ id }) => id).filter(id => id < before), [...ids].reverse(), 'and upwards')
  }
  t.throws(() => table.insert([base, { ...base, action: null as unknown as string }]), { code: /^SQLITE_CONSTRAINT/ }, 'all or none')
  t.equal(table.list({}).length, 4)
  t.match(table.epoch, /^[0-9a-f]{16}$/)
  t.equal(createActivityTable(db).epoch, table.epoch)
})

t.test('rows of the first form of the table come along', async t => {
  const path = join(t.testdir(), 'svc.db')
  const before = await openDatabase({ path, migrations: migrations.slice(0, 1) })
  before.connection.exec(`INSERT INTO activity (ts, kind, category, action, target, actor, severity, message, before_json, after_json)
    VALUES ('2026-01-01T00:00:00.000Z', 'action', 'slot', 'slot.create', 'agent', 'dashboard', 'ok', '', NULL, '{"port":1}'),
      ('2026-01-01T00:00:00.000Z', 'action', 'slot', 'slot.load', 'agent', 'dashboard', 'ok', '', NULL, NULL)`)
  before.close()
  const db = await openDatabase({ path })
  t.teardown(() => { db.close() })
  t.match(createActivityTable(db).list({}), [{ id: 2, before: null, after: null }, { id: 1, before: null, after: { port: 1 } }])
})

t.test('texts that agents had remembered leave audit rows and approvals of earlier releases, and nothing else does', async t => {
  const path = join(t.testdir(), 'svc.db')
  const before = await openDatabase({ path, migrations: migrations.slice(0, 4) })
  const trail = createActivityTable(before)
  const insert = before.connection.prepare(`INSERT INTO approvals
    (id, server, tool, dedup_key, args_json, secrets_json, actor, private, state, hit_count, enqueued_at, result_json)
    VALUES (?, ?, ?, ?, ?, '[]', 'mcp:bob', 0, ?, 1, '2026-01-01T00:00:00.000Z', ?)`)
  const given = {
    'memory/memory_add': { text: 'Zanzibar', metadata: { place: 'Zanzibar' } },
    'admin/memory_add': { content: 'Zanzibar' },
    'memory/memory_curate': { memory_id: 'm', text: 'Zanzibar', reason: 'Zanzibar' },
    'memory/directive_create': { name: 'n', content: 'Zanzibar' },
    'memory/mental_model_create': { name: 'n', source_query: 'Zanzibar' },
    'memory/memory_search': { query: 'kept' },
    'files/memory_add': { text: 'kept' }
  }
  const base = {
    ts: '2026-01-01T00:00:00.000Z', kind: 'action', actor: 'mcp:bob', severity: 'info', outcome: 'ok', message: 'm', error: null, duration_ms: 1, request_id: 'r'
  } as const
  for (const [target, args] of Object.entries(given)) {
    const [server, tool] = target.split('/') as [string, string]
    trail.insert([{ ...base, category: 'mcp', action: 'mcp.tool.invoked', target, before: args, after: { approval_id: 'a' } }])
    const after = { server, tool, args, state: 'executed' }
    for (const action of ['approval.approve', 'approval.deny']) trail.insert([{ ...base, category: 'approval', action, target: 'a', before: null, after }])
    for (const state of ['executed', 'denied', 'pending']) {
      const result = state !== 'executed' ? null : JSON.stringify(tool === 'memory_curate' ? args : { id: 'kept' })
      insert.run([`${target} ${state}`, server, tool, target, JSON.stringify(args), state, result])
    }
  }
  before.close()
  const db = await openDatabase({ path })
  t.teardown(() => { db.close() })
  const records = createActivityTable(db).list({})
  t.equal(records.length, 21)
  t.notMatch(JSON.stringify(records), /Zanzibar/)
  t.equal(JSON.stringify(records).match(/"kept"/g)?.length, 6)
  t.match(records.find(({ target }) => target === 'memory/memory_add'), { before: null, after: { approval_id: 'a' } })
  t.strictSame(records.find(({ action }) => action === 'approval.deny')?.after, { server: 'files', tool: 'memory_add', args: { text: 'kept' }, state: 'executed' })
  const approvals = createApprovalTable(db, createSystemClock())
  t.notMatch(JSON.stringify(['executed', 'denied'].map(state => approvals.list({ state: state as 'denied', limit: 100 }))), /Zanzibar/)
  t.strictSame(approvals.get('memory/memory_add executed')?.args, {})
  t.match(approvals.get('memory/memory_add executed'), { result: { id: 'kept' } })
  t.match(approvals.get('files/memory_add denied'), { args: { text: 'kept' }, unwritten: { length: 0 } })
  const hidden = approvals.list({ state: 'pending', limit: 100 }).map(({ server, tool, args, unwritten }) => [`${server}/${tool}`, args, unwritten] as const)
  t.strictSame(Object.fromEntries(hidden.map(([target, args]) => [target, args])), given, 'what waits runs with what was asked for')
  t.strictSame(Object.fromEntries(hidden.map(([target, , names]) => [target, names])), {
    'memory/memory_add': ['text', 'metadata'], 'admin/memory_add': ['text', 'metadata'], 'memory/memory_curate': ['text', 'reason'],
    'memory/directive_create': ['content'], 'memory/mental_model_create': ['source_query'], 'memory/memory_search': [], 'files/memory_add': []
  })
})

t.test('a timer of the system clock fires neither early nor once cancelled', async t => {
  const clock = createSystemClock()
  t.ok(Math.abs(clock.now() - Date.now()) < 1000)
  t.ok(clock.monotonic() <= clock.monotonic())
  let fired = false
  const timers = [2 ** 31, 2 ** 40, Infinity].map(ms => clock.setTimer(ms, () => { fired = true }))
  clock.setTimer(0, () => { fired = true }).cancel()
  // node turns a delay that it cannot hold into 1 ms, so such a timer would come before this one
  await new Promise<void>(resolve => {
    const keepAlive = setInterval(() => undefined, 1000)
    clock.setTimer(3, () => { clearInterval(keepAlive); resolve() })
  })
  t.notOk(fired, 'neither a cancelled timer nor one that is longer than node allows')
  for (const timer of timers) timer.cancel()
})
