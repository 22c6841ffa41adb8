import { readFile, writeFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { svcError, type Logger, type NewEvent } from '../../../kernel/contract/index.js'
import type { ContainerRuntime, EngineExit, PullProgress } from '../../../kernel/contract/engine-runtime.js'
import { withBudget } from '../../../kernel/async/budget.js'
import { lastWords, withoutNoise } from '../../../kernel/slots/life/engine-words.js'
import { ExitHub } from '../../../kernel/slots/life/exit-hub.js'
import { defaultVerdict, pollPauseMs, untilHealthy, watchHealth, type ProbeResult } from '../../../kernel/slots/life/health.js'
import { ImagePulls } from '../../../kernel/slots/life/image-pulls.js'
import { SerialQueue } from '../../../kernel/async/serial-queue.js'
import { SlotStateFiles, type SlotStateFile } from '../../../kernel/slots/life/slot-state-file.js'
import { SnapshotFeed } from '../../../kernel/async/snapshot-feed.js'
import { Throughput } from '../../../kernel/slots/life/throughput.js'
import { FakeClock, settle } from '../../../kernel/testing/fake-clock.js'

const never = new AbortController().signal

t.test('status feed', async t => {
  t.test('gives the present, then every change, and ends with the reader, the signal or the feed', async t => {
    const feed = new SnapshotFeed<number>()
    const stop = new AbortController()
    const seen: number[] = []
    const reading = (async () => { for await (const value of feed.read(() => 0, stop.signal)) seen.push(value) })()
    await settle()
    feed.publish(1)
    feed.publish(2)
    await settle()
    t.strictSame(seen, [0, 1, 2])
    t.equal(feed.size, 1)
    stop.abort()
    await reading
    t.equal(feed.size, 0, 'nothing is left of the reader')
    for await (const value of feed.read(() => 7, never)) {
      t.equal(value, 7)
      break
    }
    t.equal(feed.size, 0)
    const last = feed.read(() => 3, never)
    await last.next()
    const waiting = last.next()
    feed.publish(4)
    feed.close()
    t.strictSame(await waiting, { value: 4, done: false }, 'what was published before the end arrives')
    t.strictSame(await last.next(), { value: undefined, done: true })
    t.strictSame((await feed.read(() => 5, never).next()).value, 5, 'a closed feed still tells the present')
  })
  t.test('a slow reader loses the oldest and nobody waits for it', async t => {
    const feed = new SnapshotFeed<number>()
    const slow = feed.read(() => -1, never)
    await slow.next()
    for (let i = 0; i < 1_000; i++) feed.publish(i)
    const seen: number[] = []
    feed.close()
    for await (const value of slow) seen.push(value)
    t.equal(seen.length, 64)
    t.equal(seen.at(-1), 999, 'the newest is there')
  })
})

t.test('time budgets', async t => {
  const clock = new FakeClock()
  const spent = () => svcError('slot.load_failed', 'spent')
  t.equal(await withBudget(clock, 10, never, spent, async () => 1), 1)
  t.equal(clock.pending, 0)
  await t.rejects(withBudget(clock, 10, never, spent, async () => { throw new Error('own') }), { message: 'own' })
  const waits = (signal: AbortSignal): Promise<never> => new Promise((_, reject) => { signal.addEventListener('abort', () => reject(new Error('something else'))) })
  const late = withBudget(clock, 10, never, spent, waits)
  late.catch(() => {})
  await clock.advance(10)
  await t.rejects(late, { code: 'slot.load_failed' }, 'the reason is the budget, whatever the work says')
  const caller = new AbortController()
  const left = withBudget(clock, 10, caller.signal, spent, waits)
  caller.abort(new Error('left'))
  await t.rejects(left, { message: 'left' })
  await t.rejects(withBudget(clock, 10, AbortSignal.abort(new Error('before')), spent, async signal => signal.throwIfAborted()), { message: 'before' })
  t.equal(clock.pending, 0, 'no timer is left')
})

t.test('a mutex runs one after the other, also behind a failure', async t => {
  const mutex = new SerialQueue()
  const log: string[] = []
  const work = (name: string, fails = false) => mutex.run(async () => {
    log.push(`${name} begins`)
    await settle()
    log.push(`${name} ends`)
    if (fails) throw new Error(name)
    return name
  })
  const all = await Promise.allSettled([work('a'), work('b', true), work('c')])
  t.strictSame(all.map(({ status }) => status), ['fulfilled', 'rejected', 'fulfilled'])
  t.strictSame(log, ['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
})

t.test('exit hub: each end is told once, to the one who cares, also when it was first', async t => {
  let tell = (_exit: EngineExit): void => {}
  let unsubscribed = false
  const hub = new ExitHub({
    onExit: (_instance: string, listener: typeof tell) => {
      tell = listener
      return () => { unsubscribed = true }
    }
  } as unknown as ContainerRuntime, 'i')
  const told: string[] = []
  const listen = (id: string, name = id) => hub.onExit(id, exit => told.push(`${name} ${exit.exitCode}`))
  const exit = (id: string): void => tell({ id, labels: {}, exitCode: 3 })
  listen('a')
  const leave = listen('b')
  leave()
  exit('a')
  exit('a')
  exit('b')
  exit('unknown')
  t.strictSame(told, ['a 3'])
  listen('unknown', 'late')
  t.strictSame(told, ['a 3'], 'not before the caller has its answer')
  await settle()
  t.strictSame(told, ['a 3', 'late 3'])
  const first = listen('c', 'first')
  listen('c', 'second')
  first()
  exit('c')
  t.strictSame(told.at(-1), 'second 3', 'who was replaced cannot unsubscribe the other')
  for (let i = 0; i < 300; i++) exit(`e${i}`)
  listen('e0', 'forgotten')
  await settle()
  t.equal(told.length, 3, 'only the last 256 ends are remembered')
  hub.close()
  t.ok(unsubscribed)
})

t.test('health', async t => {
  t.strictSame([200, 503, 404, 500].map(status => defaultVerdict({ status, json: null })), ['ok', 'loading', 'failed', 'failed'])
  const check = { path: '/health' }
  const address = { host: '127.0.0.1', port: 1 }
  t.test('polls until the engine is well, at growing intervals', async t => {
    const clock = new FakeClock()
    const at: number[] = []
    const results: ProbeResult[] = ['refused', 'silent', 'loading', 'failed', 'loading', 'loading', 'loading', 'ok']
    const wait = { address, check, clock, refusedMs: () => 0, told: () => {} }
    const well = untilHealthy({ ...wait, probe: async () => {
      at.push(clock.now() - 1_700_000_000_000)
      return results.shift()!
    } }, never)
    await clock.advance(5_000)
    await well
    t.strictSame(at, [0, 10, 20, 30, 40, 50, 60, 70])
    t.strictSame([0, 150, 200, 1_000, 9_000, 10_000, 600_000].map(pollPauseMs), [10, 10, 10, 50, 450, 500, 500])
    t.equal(clock.pending, 0)
    const stop = new AbortController()
    const gaveUp = untilHealthy({ ...wait, probe: async () => 'loading' }, stop.signal)
    gaveUp.catch(() => {})
    await clock.advance(100)
    stop.abort(new Error('enough'))
    await t.rejects(gaveUp, { message: 'enough' })
    t.equal(clock.pending, 0)
  })
  t.test('tells what the check says once it is news, and gives up on what refuses for too long', async t => {
    type Case = [name: string, result: (at: number) => ProbeResult, listensLate: boolean, endsAt: number | null, said: RegExp]
    const cases: Case[] = [
      ['a steady 404', () => ({ verdict: 'failed', status: 404 }), false, 60_000, /^GET \/health answered 404, \d+ times$/],
      ['nobody listens', () => 'refused', false, 60_000, /was refused: nothing listens there, \d+ times$/],
      ['nobody listens yet', () => 'refused', true, null, /was refused/],
      ['an error of the server', () => ({ verdict: 'failed', status: 500 }), false, null, /answered 500/],
      ['a word in between', at => at > 30_000 && at < 31_000 ? 'loading' : 'refused', false, 91_500, /was refused/]
    ]
    for (const [name, result, listensLate, endsAt, pattern] of cases) {
      const clock = new FakeClock(0)
      const stop = new AbortController()
      const told: string[] = []
      let ended: number | null = null
      const begun = clock.monotonic()
      const now = (): number => clock.monotonic() - begun
      const probe = async (): Promise<ProbeResult> => result(now())
      const note = (said: string): void => { told.push(said) }
      const options = { probe, address, check: { ...check, listensLate }, clock, refusedMs: () => 60_000, told: note }
      const wait = untilHealthy(options, stop.signal).catch((error: unknown) => {
        ended = now()
        if (!stop.signal.aborted) t.match(error, { message: pattern }, name)
      })
      await clock.advance(1_900)
      t.strictSame(told, [], 'at first that is what a start looks like')
      await clock.advance(200_000)
      if (endsAt === null) t.equal(ended, null, name)
      else t.ok(ended !== null && Math.abs(ended - endsAt) < 1_000, `${name}: ${String(ended)}`)
      t.match(told.at(-1), pattern)
      stop.abort()
      await wait
      t.equal(clock.pending, 0, name)
    }
  })
  t.test('watch: two failures in a row, and silence only while nothing runs', async t => {
    const cases: Array<[string, ProbeResult[], boolean, number | null]> = [
      ['dead', ['refused', 'refused'], false, 4_000], ['one slip', ['refused', 'ok', 'refused', 'ok'], false, null], ['failing', ['ok', 'failed', 'failed'], true, 6_000],
      ['silent', ['silent', 'silent'], false, 4_000], ['busy and silent', ['silent', 'silent', 'silent', 'silent'], true, null],
      ['loading again', ['loading', 'loading', 'loading', 'loading'], false, null]
    ]
    for (const [name, results, busy, lostAt] of cases) {
      const clock = new FakeClock(0)
      const stop = new AbortController()
      let lost: number | null = null
      const watching = watchHealth({
        probe: async () => results.shift() ?? 'ok', address, check, clock, unresponsiveMs: () => 60_000, work: { busy: () => busy, heard: () => 0 }
      }, () => { lost = clock.now() }, stop.signal)
      await clock.advance(9_000)
      stop.abort()
      await watching
      t.equal(lost, lostAt, name)
      t.equal(clock.pending, 0, name)
    }
  })
})

t.test('image pulls', async t => {
  const image = { ref: 'example.org/engine:1', digest: null, warning: null }
  const events: NewEvent[] = []
  let progress = (_: PullProgress): void => {}
  let finish = { resolve: (): void => {}, reject: (_: Error): void => {} }
  let present = false
  let pulls = 0
  const runtime = {
    imagePresent: async () => present,
    pull: (_ref: string, _digest: string | null, onProgress: typeof progress, signal: AbortSignal) =>
      new Promise<void>((resolve, reject) => {
        pulls++
        progress = onProgress
        finish = { resolve, reject }
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
      })
  } as unknown as ContainerRuntime
  const images = new ImagePulls(() => runtime, { emit: (event: NewEvent) => { events.push(event) } } as never)
  const layers = (layer: number): PullProgress => ({ layer, totalLayers: 4, currentBytes: layer * 10, totalBytes: 40, message: '' })

  t.match(await images.status('a', image, never), { state: 'missing', slot_name: 'a', image: image.ref })
  t.match(images.start('a', image), { resumed: false, status: { state: 'pulling', layer: 0 } })
  t.match(images.start('a', image), { resumed: true }, 'one at a time per slot')
  t.equal(pulls, 1)
  const seen: string[] = []
  const watching = (async () => { for await (const status of images.watch('a', image, never)) seen.push(`${status.state} ${status.layer}`) })()
  await settle()
  progress(layers(2))
  await settle()
  t.match(await images.status('a', image, never), { state: 'pulling', layer: 2, current_bytes: 20 })
  finish.resolve()
  await watching
  t.strictSame(seen, ['pulling 0', 'pulling 2', 'completed 2'])
  present = true
  t.match(await images.status('a', image, never), { state: 'present' }, 'afterwards the runtime is asked')
  t.strictSame((await images.watch('a', image, never).next()).value, { ...await images.status('a', image, never) })

  images.start('a', image)
  finish.reject(svcError('runtime.image_missing', 'no such tag'))
  await settle()
  t.match(await images.status('a', image, never), { state: 'failed', error: 'no such tag' })
  t.match(await images.status('a', { ...image, ref: 'another' }, never), { state: 'present', image: 'another' }, 'a failure says nothing about another image')
  t.match(images.start('a', image), { resumed: false }, 'and can be tried again')
  await images.close()
  t.match(await images.status('a', image, never), { state: 'cancelled' }, 'a stopping gateway ends them')
  t.strictSame(events.map(({ type, severity }) => `${type} ${severity}`),
    ['pull.progress info', 'pull.completed info', 'pull.failed error', 'pull.cancelled info'])
})

t.test('throughput: a window of ten seconds and totals', async t => {
  const clock = new FakeClock(5_000_000)
  const meter = new Throughput(clock)
  t.strictSame(meter.read(), { tokensPerSec: 0, ttftMs: null, requestCount: 0, tokenCount: 0 })
  meter.request()
  meter.firstToken(120)
  for (let second = 0; second < 10; second++) {
    meter.addTokens(10)
    await clock.advance(second < 9 ? 1_000 : 0)
  }
  t.strictSame(meter.read(), { tokensPerSec: 10, ttftMs: 120, requestCount: 1, tokenCount: 100 })
  await clock.advance(5_000)
  t.equal(meter.read().tokensPerSec, 5, 'the older half has left the window')
  meter.addTokens(30)
  t.equal(meter.read().tokensPerSec, 8)
  await clock.advance(3_600_000)
  t.equal(meter.read().tokensPerSec, 0)
  t.equal(meter.read().tokenCount, 130, 'totals stay')
})

t.test('state files: at most one write a second, flushed at the end, and never in the way', async t => {
  const root = t.testdir()
  const clock = new FakeClock()
  const warnings: object[] = []
  const log = { warn: (fields: object) => { warnings.push(fields) } } as unknown as Logger
  const files = new SlotStateFiles(root, clock, log)
  const state = (generation: number): SlotStateFile => ({
    name: 'a', state: 'ready', model_id: 'm', port: 8081, updated_at: 1, last_used_at: 2.5, generation, message: '', extra: { adopted: true }
  })
  const onDisk = async (): Promise<{ generation: number } | null> =>
    JSON.parse(await readFile(join(root, 'a/state.json'), 'utf8').catch(() => 'null')) as { generation: number } | null
  t.equal(await files.read('a'), null, 'none')
  t.strictSame(warnings, [], 'which is no reason to complain')
  files.note('a', state(1))
  files.note('a', state(2))
  t.equal(await onDisk(), null, 'soon, not now')
  await clock.advance(1_000)
  await files.flush()
  t.equal((await onDisk())?.generation, 2, 'the last one counts')
  files.note('a', state(3))
  files.note('a', state(4))
  t.equal(clock.pending, 1, 'one timer, however often it changes')
  await files.flush()
  t.equal((await onDisk())?.generation, 4)
  t.equal(clock.pending, 0)
  t.strictSame(await new SlotStateFiles(root, clock, log).read('a'), state(4), 'another run reads it back')

  for (const text of ['', '{', '[]', '{"name":"a","state":"flying","updated_at":1}']) {
    await writeFile(join(root, 'a/state.json'), text)
    t.equal(await files.read('a'), null, `ignored: ${text}`)
  }
  t.equal(warnings.length, 4, 'and told')
  await writeFile(join(root, 'a/state.json'), '{"name":"a","state":"offline","updated_at":1,"of_a_newer_release":true}')
  t.match(await files.read('a'), { state: 'offline', generation: 0, extra: {} })

  files.note('a', state(5))
  await files.remove('a')
  await clock.advance(2_000)
  await files.flush()
  t.equal(await onDisk(), null, 'a removed one does not come back')
  await writeFile(join(root, 'file'), '')
  await mkdir(join(root, 'other'))
  files.note('file', state(1))
  await files.flush()
  t.equal(warnings.length, 5, 'a write that fails is told and harms nothing')
})

t.test('last words: the line that tells why, without polls and farewells', async t => {
  const log = [
    'srv  log_server_r: request: GET /health 127.0.0.1 503', 'E cannot load bge: it has no ranking head', '', '-----',
    'INFO: 127.0.0.1:4 - "GET /health HTTP/1.1" 503', 'srv operator(): cleaning up before exit...', 'main: exiting due to model loading error'
  ]
  t.equal(withoutNoise(log, '/health').length, 5)
  t.equal(withoutNoise(['GET /healthy', 'see /health', 'GET /v1/health'], '/health').length, 3)
  t.equal(lastWords(withoutNoise(log, '/health')), '; its last words: E cannot load bge: it has no ranking head')
  const verbose = ['0.00.063.644 E srv          init: chat template parsing error: try using --jinja',
    '0.00.063.669 I srv    operator(): operator(): cleaning up before exit...', '0.00.066.965 E srv  llama_server: exiting due to model loading error',
    '\u001B[0m0.00.067.060 D ~llama_context:        CPU compute buffer size is   0.6574 MiB']
  t.match(lastWords(verbose), /E srv +init: chat template parsing error: try using --jinja$/, 'lines for debugging come after the reason')
  t.equal(lastWords(['main: exiting']), '; its last words: main: exiting', 'better than nothing')
  t.equal(lastWords(['', '== 1']), '')
  t.ok(lastWords(['x'.repeat(5_000)]).length < 400)
})
