import { fork } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { ConfigDraft } from '../../../kernel/contract/index.js'
import { resolvePaths } from '../../../kernel/config/paths.js'
import { createWithLock } from '../../../kernel/state/file-lock.js'
import { acquireHomeLock } from '../../../kernel/state/home-lock.js'
import { capabilityChoices } from '../../../plugins/services/capabilities/ref.js'
import { oneFile } from '../../one-file.js'
import { someOf } from '../../whole.js'
import { before, reshape, tree, watchedOps } from './change.js'
import { openHome, writeTree } from './support.js'

type Fixture = Parameters<Test['testdir']>[0]
interface Measure {
  readonly start: Record<string, string>
  readonly end: Record<string, string>
  readonly operations: number
  /** The operation with which the journal is there. */
  readonly journal: number
}

/** Homes before and after the change, and how many file operations lie between. */
async function measure (t: Test, roots: Fixture = { var: {} }): Promise<Measure> {
  const home = t.testdir(roots)
  let operations = 0
  let journal = 0
  const { config } = await openHome(home, before, {
    ops: watchedOps((index, name, path) => {
      operations++
      if (name === 'rename' && path.includes('.config.journal.')) journal = index
    })
  })
  const start = tree(home)
  await config.change(reshape)
  return { start, end: tree(home), operations, journal }
}

t.test('one change of many files', async t => {
  const home = t.testdir({ var: {} })
  const { config } = await openHome(home, before)
  const start = tree(home)
  const seen: number[] = []
  config.onChange(next => seen.push(next.slots.size))
  const revision = config.snapshot.revision
  await config.change(reshape, { dryRun: true })
  t.same(tree(home), start, 'a dry run writes nothing')
  t.equal(config.snapshot.revision, revision)
  const result = await config.change(async draft => {
    await reshape(draft)
    t.match(draft.slots.get('agent'), { device: 'gpu-vulkan', port: 8081 }, 'a draft shows what was changed on it')
    t.notOk(draft.slots.has('gone'))
    return 'done'
  })
  t.equal(result, 'done')
  t.same(seen, [2], 'listeners are told once')
  t.equal(config.snapshot.revision, revision + 1)
  t.same(config.snapshot.diagnostics, [])
  t.match(capabilityChoices.of(config.snapshot), { embed: { device: 'cpu', model: 'nomic' }, tts: { device: 'cpu', enabled: true } })
  t.match(config.snapshot.profiles.get('mine'), { flags: '-fa on', image: 'x', seed: false })
  const end = tree(home)
  t.equal(end['etc/svc/slots/agent.toml'], '# mine\nport = 8081 # fixed\ndevice = "gpu-vulkan"\nidle_timeout_s = 60\n', 'comments stay')
  t.match(end['etc/svc/profiles.toml'], /# my own\n\[profile\.mine\]\nimage = "x" # what else\nflags = "-fa on"\n/)
  t.match(end['etc/svc/capabilities.toml'], /schema_version = 2[^]*device = "cpu"/)
  t.equal(end['etc/svc/capabilities.toml.v1.bak'], before['capabilities.toml'], 'the file of the old format is kept')
  t.equal(end['var/lib/svc/stacks.json'], '{"active":"saber"}\n')
  t.equal(statSync(join(home, 'etc/svc/private.json')).mode & 0o777, 0o600, 'one that was open to others is not any more')
  t.same(Object.keys(end).filter(path => /\/\./.test(path)), [], 'nothing lies about')
})

t.test('a private file: alone, replaced without being read, removed', async t => {
  const home = t.testdir({ var: {} })
  const { config } = await openHome(home, {})
  const path = join(home, 'etc/svc/keys.json')
  t.equal(await config.change(draft => draft.putPrivate('keys.json', null)), false)
  t.equal(await config.change(draft => draft.putPrivate('keys.json', 'a')), false)
  t.equal(statSync(path).mode & 0o777, 0o600)
  writeFileSync(path, Buffer.from([0xff, 0xfe]))
  chmodSync(path, 0o666)
  t.same(await config.change(async draft => [await draft.putPrivate('keys.json', 'b'), await draft.putPrivate('keys.json', 'c')]), [true, true])
  t.equal(statSync(path).mode & 0o777, 0o600)
  t.equal(readFileSync(path, 'utf8'), 'c')
  t.same(await config.change(async draft => [await draft.putPrivate('keys.json', null), await draft.putPrivate('keys.json', null)]), [true, false])
  t.notOk(existsSync(path))
  t.same(Object.keys(tree(home)), [])
})

t.test('what a draft refuses, nothing of it is written', async t => {
  const home = t.testdir({ var: {} })
  const { config } = await openHome(home, { ...before, 'slots/broken.toml': 'port = ' })
  const start = tree(home)
  const refusals: ReadonlyArray<[(draft: ConfigDraft) => Promise<void>, { code: string } | { message: string }]> = [
    [async draft => { await draft.createSlot('agent', {}) }, { code: 'slot.already_exists' }],
    [async draft => { await draft.createSlot('broken', {}) }, { code: 'slot.already_exists' }],
    [async draft => { await draft.patchSlot('none', {}) }, { code: 'slot.not_found' }],
    [async draft => { await draft.patchSlot('agent', { prot: 1 }) }, { code: 'validation.unknown_keys' }],
    [async draft => { await draft.deleteSlot('../agent') }, { code: 'validation.invalid' }],
    [async draft => { await draft.putProfile('rocm', null) }, { code: 'profiles.seed_immutable' }],
    [async draft => { await draft.putProfile('Bad Name', draft.profiles.get('mine')!) }, { code: 'validation.invalid' }],
    [async draft => { await draft.putRow('stacks.toml', 'saber', null) }, { code: 'validation.invalid' }],
    [async () => { throw new Error('mine') }, { message: 'mine' }]
  ]
  for (const [refused, expected] of refusals) {
    await t.rejects(config.change(async draft => {
      await reshape(draft)
      await refused(draft)
    }), expected)
  }
  t.same(tree(home), start)
  await config.change(async draft => { await draft.deleteSlot('broken') })
  t.notOk(tree(home)['etc/svc/slots/broken.toml'], 'a file that cannot be read can be deleted')
})

t.test('a file operation that fails, any of them, leaves everything as it was', async t => {
  const { operations, end } = await measure(t)
  for (const at of someOf([...Array(operations).keys()], 4)) {
    const home = t.testdir({ var: {} })
    let name = ''
    const ops = watchedOps((index, op, path) => {
      if (index !== at) return
      name = `${at}: ${op} ${path.slice(path.lastIndexOf('svc/'))}`
      throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' })
    })
    const { config } = await openHome(home, before, { ops })
    const start = tree(home)
    const snapshot = config.snapshot
    const outcome = await config.change(reshape).then(() => 'done', (error: { code?: string }) => error.code)
    if (outcome === 'done') {
      // only what is swept up afterwards may fail without a word
      t.same(cleaned(tree(home)), end, name)
      continue
    }
    t.equal(outcome, 'config.write_failed', name)
    t.same(tree(home), start, name)
    t.equal(config.snapshot, snapshot, name)
    await config.change(reshape)
    t.same(tree(home), end, `${name}, and again`)
  }
})

t.test('a process that stops at any file operation: the next start finishes or has changed nothing', async t => {
  const { operations, start, end } = await measure(t)
  const outcomes = new Set<string>()
  for (const at of someOf([...Array(operations).keys()], 4)) {
    const home = t.testdir({ var: {} })
    let name = ''
    const stopped = new Deferred()
    const { config } = await openHome(home, before, {
      ops: watchedOps((index, op, path) => {
        if (index !== at) return
        name = `${at}: ${op} ${path.slice(path.lastIndexOf('svc/'))}`
        stopped.resolve()
        return new Promise(() => {})
      })
    })
    void config.change(reshape)
    await stopped.promise
    const { config: next } = await openHome(home, {})
    const found = cleaned(tree(home))
    const isEnd = JSON.stringify(found) === JSON.stringify(end)
    outcomes.add(isEnd ? 'finished' : 'unchanged')
    t.same(found, isEnd ? end : start, name)
    t.same(next.snapshot.diagnostics, [], name)
    t.equal(next.snapshot.slots.has('coder'), isEnd, name)
  }
  t.same([...outcomes].sort(), ['finished', 'unchanged'], 'both were seen')
})

t.test('the same with a process that is killed, and whose locks the next one takes over', { timeout: 300_000 }, async t => {
  const { operations, start, end, journal } = await measure(t, { var: { lib: { svc: {} } } })
  // early, right before and after the journal is there, before some of the renames, late
  const points = [0, journal, ...[1, 2, 4, 7].map(after => journal + after), operations - 1]
  const outcomes = new Set<string>()
  const program = await oneFile(join(import.meta.dirname, 'change-child.js'))
  for (const point of someOf(points, 3)) {
    const home = t.testdir({ var: {} })
    writeTree(join(home, 'etc/svc'), before)
    const child = fork(program, [home, String(point)], { execArgv: [], silent: true })
    const [at] = await once(child, 'message') as [{ name: string, path: string }]
    child.kill('SIGKILL')
    await once(child, 'exit')
    const lock = await acquireHomeLock(resolvePaths({}, { home }), 'the next')
    await openHome(home, {}, { withLock: createWithLock() })
    await lock.release()
    const found = tree(home)
    const isEnd = JSON.stringify(found) === JSON.stringify(end)
    outcomes.add(isEnd ? 'finished' : 'unchanged')
    t.same(found, point > journal ? end : start, `${point}: ${at.name} ${at.path.slice(home.length)}`)
  }
  t.same([...outcomes].sort(), ['finished', 'unchanged'], 'both were seen')
})

t.test('a home whose disk is read-only opens all the same, as long as no change is half done', async t => {
  const home = t.testdir({ var: {} })
  await stopAfterJournal(home)
  const busy = async (): Promise<never> => { throw Object.assign(new Error('EROFS'), { code: 'config.write_failed' }) }
  await t.rejects(openHome(home, {}, { withLock: busy }), { code: 'config.write_failed' })
  await openHome(home, {})
  const left = join(home, `etc/svc/.x.00000000-1-1-0123456789ab.tmp`)
  writeFileSync(left, '')
  utimesSync(left, 0, 0)
  await openHome(home, {}, { withLock: busy })
  t.ok(existsSync(left))
  await openHome(home, {})
  t.notOk(existsSync(left))
})

t.test('files that were changed by hand in the meantime stay', async t => {
  const { end } = await measure(t)
  const home = t.testdir({ var: {} })
  await stopAfterJournal(home)
  writeFileSync(join(home, 'etc/svc/slots/agent.toml'), 'port = 8099\n')
  const { config, log } = await openHome(home, {})
  t.same(cleaned(tree(home)), { ...end, 'etc/svc/slots/agent.toml': 'port = 8099\n' })
  t.equal(config.snapshot.slots.get('agent')?.port, 8099)
  t.match(log.lines.map(line => line.message), [/slots\/agent\.toml: was edited/, /finished a change of several files/])
})

t.test('a journal whose staged files are gone is taken back', async t => {
  const { start } = await measure(t)
  const home = t.testdir({ var: {} })
  await stopAfterJournal(home)
  const journal = JSON.parse(readFileSync(join(home, 'etc/svc/.config.journal'), 'utf8')) as { files: Array<{ file: string, next: string }> }
  rmSync(join(home, 'etc/svc', journal.files.find(({ file }) => file === 'profiles.toml')!.next))
  await openHome(home, {})
  t.same(cleaned(tree(home)), start)
})

t.test('a home that was moved, and a journal that makes no sense', async t => {
  const { end } = await measure(t)
  const home = t.testdir({ var: {} })
  await stopAfterJournal(home)
  const { renameSync } = await import('node:fs')
  const moved = `${home}-moved`
  renameSync(home, moved)
  t.teardown(() => rmSync(moved, { recursive: true }))
  await openHome(moved, {})
  t.same(cleaned(tree(moved)), end)
  writeFileSync(join(moved, 'etc/svc/.config.journal'), '{}')
  await t.rejects(openHome(moved, {}), { code: 'config.parse_error', message: /\.config\.journal is not the journal of a change/ })
})

class Deferred {
  resolve: () => void = () => {}
  readonly promise = new Promise<void>(resolve => { this.resolve = resolve })
}

/** Leaves a home as a process does that dies right after the journal was written. */
async function stopAfterJournal (home: string): Promise<void> {
  const stopped = new Deferred()
  let journal = false
  const { config, paths } = await openHome(home, before, {
    ops: watchedOps((_index, name, path) => {
      if (journal && name === 'rename' && !path.includes('.config.journal')) {
        stopped.resolve()
        return new Promise(() => {})
      }
      journal ||= name === 'rename' && path.includes('.config.journal')
    })
  })
  void config.change(reshape)
  await stopped.promise
  if (!readdirSync(paths.etc).includes('.config.journal')) throw new Error('there is no journal')
}

/** Without what only a dead process' sweep removes: this one is alive. */
function cleaned (files: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(files).filter(([path]) => !path.endsWith('.tmp')))
}
