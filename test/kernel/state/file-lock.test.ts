import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { isSvcError } from '../../../kernel/contract/index.js'
import { resolvePaths } from '../../../kernel/config/paths.js'
import { ownIdentity } from '../../../kernel/config/files/process-identity.js'
import { acquireLock, createWithLock } from '../../../kernel/state/file-lock.js'
import { acquireHomeLock } from '../../../kernel/state/home-lock.js'
import { isStale, readHolder } from '../../../kernel/state/lock-holder.js'

function start (t: Pick<Test, 'teardown'>, ...args: string[]): ChildProcess {
  const child = fork(join(import.meta.dirname, 'lock-child.js'), args, { execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  t.teardown(() => child.kill('SIGKILL'))
  return child
}

t.test('a text that cannot be written is refused with its reason', async t => {
  const folder = t.testdir()
  const lock = await acquireLock(join(folder, 'deep/a.lock'))
  rmSync(join(folder, 'deep'), { recursive: true })
  await t.rejects(lock.update('http://127.0.0.1:8080'), { code: 'config.write_failed', message: /deep\/a\.lock cannot be written: a folder on its path is not there/ })
  await lock.release()
})

t.test('a lock keeps others out, and names the one who has it', async t => {
  const folder = t.testdir()
  const path = join(folder, 'deep/a.lock')
  const lock = await acquireLock(path, { text: 'http://127.0.0.1:8080' })
  await t.rejects(acquireLock(path, { waitMs: 0 }), {
    code: 'config.locked', message: `${path} is held by process ${process.pid} (http://127.0.0.1:8080); try again, or stop that process`,
    details: { lock: 'a.lock', pid: process.pid, holder: 'http://127.0.0.1:8080' }
  })
  await lock.update('another address')
  await t.rejects(acquireLock(path, { waitMs: 10 }), { code: 'config.locked', details: { holder: 'another address' } })
  await lock.release()
  await lock.release()
  t.same(readdirSync(join(folder, 'deep')), [], 'nothing is left')
  const again = await acquireLock(path, { waitMs: 0 })
  rmSync(path)
  writeFileSync(path, '{"token":"of someone else","pid":1,"text":""}')
  await again.update('x')
  await again.release()
  t.match(readFileSync(path, 'utf8'), 'someone else', 'a lock that was taken away is not touched')
})

t.test('only one holder works under a lock at a time', async t => {
  const folder = t.testdir()
  const withLock = createWithLock()
  const path = join(folder, 'a.lock')
  let inside = 0
  let most = 0
  await Promise.all(Array.from({ length: 30 }, () => withLock(path, async () => {
    most = Math.max(most, ++inside)
    await new Promise(resolve => { setImmediate(resolve) })
    inside--
  })))
  t.equal(most, 1)
  await t.rejects(withLock(path, async () => { throw new Error('of the work') }), { message: 'of the work' })
  t.equal(await withLock(path, async () => 'free again'), 'free again')
  await t.rejects(withLock('/dev/null/a.lock', async () => 1), { code: 'config.write_failed' })
  t.same(readdirSync(folder), [])
})

t.test('four processes that count under a lock lose nothing', async t => {
  const folder = t.testdir({ counter: '0' })
  const children = Array.from({ length: 4 }, () => start(t, 'count', join(folder, 'a.lock'), join(folder, 'counter'), '50'))
  const codes = await Promise.all(children.map(async child => (await once(child, 'exit'))[0] as number))
  t.same(codes, [0, 0, 0, 0])
  t.equal(readFileSync(join(folder, 'counter'), 'utf8'), '200')
  t.same(readdirSync(folder), ['counter'])
})

t.test('the lock of a process that was killed is taken over, by one contender at a time', async t => {
  const folder = t.testdir({ counter: '0' })
  const path = join(folder, 'a.lock')
  const holder = start(t, 'hold', path)
  await once(holder, 'message')
  await t.rejects(acquireLock(path, { waitMs: 0 }), { code: 'config.locked', details: { pid: holder.pid, holder: 'the child' } })
  const children = Array.from({ length: 4 }, () => start(t, 'count', path, join(folder, 'counter'), '10'))
  holder.kill('SIGKILL')
  await once(holder, 'exit')
  await Promise.all(children.map(child => once(child, 'exit')))
  t.equal(readFileSync(join(folder, 'counter'), 'utf8'), '40')
  t.same(readdirSync(folder), ['counter'])
})

t.test('many contenders for one stale lock: exactly one gets it', async t => {
  const folder = t.testdir()
  const path = join(folder, 'a.lock')
  const { scope } = ownIdentity()
  for (let round = 0; round < 20; round++) {
    writeFileSync(path, JSON.stringify({ token: `${scope}-999999999-1-0000000000${String(round).padStart(2, '0')}`, pid: 999_999_999, text: '' }))
    const results = await Promise.allSettled(Array.from({ length: 10 }, () => acquireLock(path, { waitMs: 0 })))
    const held = results.flatMap(result => result.status === 'fulfilled' ? [result.value] : [])
    t.equal(held.length, 1)
    for (const lock of held) await lock.release()
  }
  t.same(readdirSync(folder), [])
})

t.test('a contender that died while it took a lock over is no obstacle', async t => {
  const folder = t.testdir()
  const path = join(folder, 'a.lock')
  const { scope } = ownIdentity()
  const dead = (n: number): string => `${scope}-999999999-1-00000000000${n}`
  const content = (n: number): string => JSON.stringify({ token: dead(n), pid: 999_999_999, text: '' })
  writeFileSync(path, content(1))
  writeFileSync(`${path}.${dead(1)}.0`, content(2))
  writeFileSync(`${path}.${dead(1)}.1`, content(3))
  await (await acquireLock(path, { waitMs: 0 })).release()
  t.same(readdirSync(folder), [])
})

t.test('when a lock is stale', async t => {
  const folder = t.testdir()
  const path = join(folder, 'a.lock')
  const own = ownIdentity()
  const token = (pid: number, start: string, scope = own.scope): string => `${scope}-${pid}-${start}-0123456789ab`
  const table: readonly (readonly [string, string, number, boolean])[] = [
    ['this process', token(own.pid, own.start), 0, false],
    ['this process, long ago', token(own.pid, own.start), 1e9, false],
    ['a reused pid', token(own.pid, '1'), 0, existsSync('/proc')],
    ['a dead pid', token(999_999_999, '1'), 0, true],
    ['another pid namespace, alive a moment ago', token(1, '1', '00000000'), 30_000, false],
    ['another pid namespace, silent for long', token(1, '1', '00000000'), 61_000, true],
    ['no token, just made', 'nonsense', 0, false],
    ['no token, old', 'nonsense', 6000, true]
  ]
  for (const [name, written, age, stale] of table) {
    writeFileSync(path, JSON.stringify({ token: written, pid: 1, text: '' }))
    const now = 1_000_000_000_000
    utimesSync(path, (now - age) / 1000, (now - age) / 1000)
    t.equal(isStale((await readHolder(path))!, now), stale, name)
  }
  writeFileSync(path, '')
  utimesSync(path, 0, 0)
  await (await acquireLock(path, { waitMs: 0 })).release()
  t.equal(await readHolder(path), null, 'an empty file of a crash is taken over')
})

t.test('a process that exits lets go of its locks', async t => {
  const folder = t.testdir()
  const child = start(t, 'exit', join(folder, 'a.lock'))
  await once(child, 'exit')
  t.same(readdirSync(folder), [])
})

t.test('only one gateway runs on a home', async t => {
  const paths = resolvePaths({}, { home: t.testdir() })
  const lock = await acquireHomeLock(paths, 'starting')
  await lock.update('http://127.0.0.1:8080')
  await t.rejects(acquireHomeLock(paths, 'second'), {
    code: 'gateway.home_in_use', details: { pid: process.pid, address: 'http://127.0.0.1:8080' },
    message: `another gateway (process ${process.pid}) at http://127.0.0.1:8080 runs on ${paths.home}; stop it, or set SVC_HOME to another folder`
  })
  await lock.release()
  await (await acquireHomeLock(paths, 'third')).release()
})

t.test('those who stand in line for a lock that another process keeps wait once, not one after the other', async t => {
  const path = join(t.testdir(), 'a.lock')
  const child = start(t, 'hold', path)
  await once(child, 'message')
  const withLock = createWithLock({ waitMs: 500 })
  const wait = async (count: number): Promise<{ ms: number, outcomes: Array<PromiseSettledResult<unknown>> }> => {
    const from = performance.now()
    const outcomes = await Promise.allSettled(Array.from({ length: count }, () => withLock(path, async () => undefined)))
    return { ms: performance.now() - from, outcomes }
  }
  const { ms: alone } = await wait(1)
  const { ms: together, outcomes } = await wait(20)
  t.strictSame(outcomes.map(outcome => outcome.status === 'rejected' && isSvcError(outcome.reason) && outcome.reason.code), Array(20).fill('config.locked'))
  t.ok(together < alone * 10, `one waits ${Math.round(alone)} ms, twenty ${Math.round(together)}`)
  child.kill('SIGKILL')
  await once(child, 'exit')
  t.equal(await withLock(path, async () => 'free'), 'free')
})
