import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { chatAnswer, FakeClock } from '../../../../kernel/testing/index.js'
import { Batches } from '../../../../plugins/v1/batches/batches.js'
import { BatchRun } from '../../../../plugins/v1/batches/batch-run.js'
import type { BatchRecord } from '../../../../plugins/v1/batches/record.js'
import { BatchResults } from '../../../../plugins/v1/batches/results.js'
import { SlotTurns } from '../../../../plugins/v1/batches/slot-turns.js'
import { liveHome, startLive } from '../../../e2e/live-gateway.js'
import { fakeUpstream, upstreamTable } from '../../../wire/fake-upstream.js'
import { batchUntil, clientOf, isOver, linesOf, rowsOf, startBatch } from './support.js'

const CHAT = '/v1/chat/completions'

async function folder (t: Test): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'svc-batches-'))
  t.teardown(() => rm(path, { recursive: true }))
  return path
}

t.test('a gateway that is killed twice in the middle of a batch writes each result once, and asks little again', async t => {
  const upstream = await fakeUpstream(t, ['far'])
  upstream.play({ headers: { 'content-type': 'application/json' }, chunks: [chatAnswer('hello')], headAfterMs: 20 })
  const home = await liveHome(t, { 'etc/svc/upstreams.toml': upstreamTable('up', upstream.url), 'etc/svc/svc.toml': '[runtime]\ndriver = "process"\n' })
  const rows = Array.from({ length: 60 }, (_, n) => ({ model: 'up/far', messages: [{ role: 'user', content: `row ${n}` }] }))
  let gateway = await startLive(t, home)
  const { id } = await startBatch(clientOf(gateway.url), linesOf(CHAT, ...rows))
  for (const calls of [10, 30]) {
    await upstream.call(calls)
    await gateway.kill('SIGKILL')
    gateway = await startLive(t, home)
  }
  const client = clientOf(gateway.url)
  const done = await batchUntil(client, id, isOver)
  t.match(done, { status: 'completed', request_counts: { total: 60, completed: 60, failed: 0 } })
  const answered = (await rowsOf(client, done.output_file_id)).map(row => row.custom_id)
  t.strictSame(answered.toSorted(), rows.map((_, n) => `row-${n}`).toSorted(), 'each row once')
  t.ok(upstream.calls.length <= 60 + 2 * 2 * 2, `${upstream.calls.length} calls`)
  t.equal(await gateway.kill('SIGTERM'), 0)
})

t.test('results that were cut off anywhere are read as far as they are whole', async t => {
  const path = await folder(t)
  const [output, errors] = [join(path, 'o'), join(path, 'e')]
  const result = (line: number, status = 200): Parameters<BatchResults['add']>[0][number] =>
    ({ line, customId: `é ${line}`, response: { status_code: status, request_id: 'r', body: {} }, error: null })
  const first = await BatchResults.open('batch_0a', output, errors)
  await first.add([result(1), result(2, 404), result(3)])
  await first.add([result(1, 500)])
  t.strictSame([first.completed, first.failed], [2, 1], 'a row that has a result keeps it')
  await first.close()
  t.equal((await stat(output)).mode & 0o777, 0o600)
  const whole = await readFile(output)
  const firstLine = whole.indexOf(0x0a) + 1
  for (let end = 0; end <= whole.length; end += 7) {
    await writeFile(output, whole)
    await truncate(output, end)
    const again = await BatchResults.open('batch_0a', output, errors)
    const kept = end >= whole.length ? 2 : end >= firstLine ? 1 : 0
    t.strictSame([again.completed, again.failed, again.has(1), again.has(2)], [kept, 1, kept > 0, true], `cut at ${end}`)
    await again.add([result(1), result(3)])
    await again.close()
    t.equal((await readFile(output, 'utf8')).trimEnd().split('\n').length, 2)
  }
})

t.test('a result is one line for every reader of lines', async t => {
  const path = await folder(t)
  const body = 'a\u0085b\u2028c\u2029d'
  const results = await BatchResults.open('batch_0a', join(path, 'o'), join(path, 'e'))
  await results.add([{ line: 1, customId: body, response: { status_code: 200, request_id: 'r', body }, error: null }])
  await results.close()
  const text = await readFile(join(path, 'o'), 'utf8')
  t.notMatch(text, /[\u0085\u2028\u2029]/)
  t.match(JSON.parse(text), { custom_id: body, response: { body } })
})

interface RunOf { readonly run: BatchRun, readonly taken: string[], readonly changes: Array<Partial<BatchRecord>> }

/** A run whose files are in a folder, and what comes of it. */
function runOf (path: string, given: Partial<BatchRecord>, onChange: (change: Partial<BatchRecord>) => void = () => {}): RunOf {
  const paths = { input: join(path, 'i'), output: join(path, 'o'), errors: join(path, 'e') }
  const clock = new FakeClock()
  const taken: string[] = []
  const changes: Array<Partial<BatchRecord>> = []
  const record = {
    id: 'batch_0b', endpoint: CHAT, status: 'validating', isWritten: false, total: 0, cancellingAt: null, expiredAt: null, agent: null, outputExpiresS: 3600,
    expiresAt: Math.floor(clock.now() / 1000) - 1, ...given
  } as unknown as BatchRecord
  const run = new BatchRun({
    clock,
    parallel: 2,
    baseUrl: () => 'http://127.0.0.1:9',
    turns: new SlotTurns({ clock, dispatch: { target: () => null }, requests: { list: () => [] }, slots: { status: () => { throw new Error('no slot') } } }),
    files: {
      get: () => { throw new Error('not asked') },
      path: () => '',
      take: async (from, { id }) => {
        taken.push(await readFile(from, 'utf8'))
        return { id } as never
      }
    }
  }, record, paths, change => {
    changes.push(change)
    onChange(change)
  }, new AbortController().signal)
  return { run, taken, changes }
}

t.test('a crash between any two steps of the end leaves something to end with', async t => {
  const path = await folder(t)
  await t.test('a file that cannot be run is there until the record says so', async t => {
    await writeFile(join(path, 'i'), 'x')
    const there: boolean[] = []
    const { run } = runOf(path, {}, ({ status }) => { if (status === 'failed') there.push(existsSync(join(path, 'i'))) })
    await run.run()
    t.strictSame([there, existsSync(join(path, 'i'))], [[true], false])
  })
  await t.test('one whose bytes are gone fails instead of being tried for ever', async t => {
    const { run, changes } = runOf(path, { status: 'in_progress' })
    await run.run()
    t.match(changes.at(-1), { status: 'failed', failedAt: Number, problems: [{ code: 'input_missing', line: null }] })
  })
  await t.test('results that were taken over, and deleted since, are not looked for', async t => {
    await writeFile(join(path, 'e'), 'errors')
    const { run, taken, changes } = runOf(path, { status: 'finalizing', isWritten: true, completed: 1, failed: 1 })
    await run.run()
    t.strictSame(taken, ['errors'])
    t.match(changes.at(-1), { status: 'completed', outputFileId: /^file-/, errorFileId: /^file-/ })
  })
})

t.test('a batch whose time is over asks nothing more, and says so of each row', async t => {
  const path = await folder(t)
  await writeFile(join(path, 'i'), linesOf(CHAT, { model: 'far' }, { model: 'far' }))
  const { run, taken, changes } = runOf(path, {})
  await run.run()
  const now = Object.assign({}, ...changes) as BatchRecord
  t.match(now, { status: 'expired', completed: 0, failed: 2, outputFileId: null, errorFileId: /^file-[0-9a-f]{24}$/, expiredAt: Number })
  t.strictSame(taken[0]!.trimEnd().split('\n').map(line => (JSON.parse(line) as { error: { code: string } }).error.code), ['batch_expired', 'batch_expired'])
})

t.test('a batch of a file that is deleted meanwhile is refused, and nothing of it stays', async t => {
  const path = await folder(t)
  const gone = Object.assign(new Error('no such file'), { code: 'files.not_found' })
  let looks = 0
  const kept: string[] = []
  const batches = new Batches({
    clock: new FakeClock(),
    parallel: 1,
    active: 1,
    baseUrl: () => '',
    folder: join(path, 'work'),
    log: { error: () => {} } as never,
    turns: new SlotTurns({
      clock: new FakeClock(),
      dispatch: { target: () => null },
      requests: { list: () => [] },
      slots: { status: () => { throw gone } }
    }),
    table: { get: () => {}, set: id => { kept.push(id) }, delete: () => false, keys: () => [] },
    files: {
      get: id => {
        if (looks++ > 0) throw gone
        return { id } as never
      },
      path: () => join(path, 'nowhere'),
      take: () => Promise.reject(gone)
    }
  })
  await batches.load()
  const body = { input_file_id: 'file-a', endpoint: CHAT, completion_window: '24h' } as const
  await t.rejects(batches.create(body, null), { code: 'files.not_found' })
  t.strictSame([batches.list(), kept, await readdir(join(path, 'work'))], [[], [], []])
})
