import t from 'tap'
import { lastWords, withoutNoise } from '../../../kernel/slots/life/engine/engine-words.js'
import { defaultVerdict, pollPauseMs, untilHealthy, type ProbeResult } from '../../../kernel/slots/life/watch/health.js'
import { WATCH_BEAT_MS, watchHealth } from '../../../kernel/slots/life/watch/health-watch.js'
import { Beat } from '../../../kernel/async/beat.js'
import { FakeClock } from '../../../kernel/testing/fake-clock.js'

const never = new AbortController().signal

const check = { path: '/health' }
const address = { host: '127.0.0.1', port: 1 }

t.test('the status of a health answer says whether the engine is well, loads or has failed', async t => {
  t.strictSame([200, 503, 404, 500].map(status => defaultVerdict({ status, json: null })), ['ok', 'loading', 'failed', 'failed'])
})

t.test('an engine that starts is asked until it is well, at growing intervals', async t => {
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

t.test('waiting tells what the check says once it is news, and gives up on what refuses for too long', async t => {
  type Case = [name: string, result: (at: number) => ProbeResult, listensLate: boolean, endsAt: number | null, said: RegExp]
  const cases: Case[] = [
    ['a steady 404', () => ({ verdict: 'failed', status: 404 }), false, 60_000, /^GET \/health answered 404, \d+ times$/],
    ['nobody listens', () => 'refused', false, 60_000, /was refused: nothing is listening there, \d+ times$/],
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

t.test('a running engine is lost after two failures in a row, after silence only while nothing runs', async t => {
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
      probe: async () => results.shift() ?? 'ok', address, check, clock, beat: new Beat(clock, WATCH_BEAT_MS), unresponsiveMs: () => 60_000, work: { busy: () => busy, heard: () => 0 }
    }, () => { lost = clock.now() }, stop.signal)
    await clock.advance(9_000)
    stop.abort()
    await watching
    t.equal(lost, lostAt, name)
    t.equal(clock.pending, 0, name)
  }
})

t.test('an engine is asked every 2 s while it works or is not well, and every 10 s while it is well and has nothing to do', async t => {
  const clock = new FakeClock(0)
  const stop = new AbortController()
  const beat = new Beat(clock, WATCH_BEAT_MS)
  const asked: Array<[engine: string, at: number]> = []
  let [inFlight, heard, answer]: [number, number, ProbeResult] = [0, 0, 'ok']
  const watch = (engine: string, work: { busy: () => boolean, heard: () => number }): Promise<void> => watchHealth({
    probe: async () => { asked.push([engine, clock.now()]); return engine === 'works' ? answer : 'ok' },
    address, check, clock, beat, unresponsiveMs: () => 60_000, work
  }, () => t.fail('no engine is lost'), stop.signal)
  const askedIn = async (ms: number): Promise<unknown> => { await clock.advance(ms); return asked.splice(0) }
  const watching = [watch('works', { busy: () => inFlight > 0, heard: () => heard })]
  await clock.advance(500)
  watching.push(watch('rests', { busy: () => false, heard: () => 0 }))
  t.equal(clock.pending, 1, 'one timer for all')
  t.strictSame(await askedIn(11_500), [['works', 2_000], ['rests', 2_000], ['works', 12_000], ['rests', 12_000]])
  inFlight = 1
  t.strictSame(await askedIn(4_000), [['works', 14_000], ['works', 16_000]], 'a request runs')
  inFlight = 0
  heard = 1
  t.strictSame(await askedIn(4_000), [['works', 18_000]], 'one ran since the last look')
  answer = 'refused'
  t.strictSame(await askedIn(8_000), [['rests', 22_000], ['works', 28_000]])
  answer = 'ok'
  t.strictSame(await askedIn(4_000), [['works', 30_000], ['rests', 32_000]], 'after a failure it is asked soon')
  stop.abort()
  await Promise.all(watching)
  t.equal(clock.pending, 0)
})

t.test('the last words of an engine are the line that says why, without polls and farewells', async t => {
  const log = [
    'srv  log_server_r: request: GET /health 127.0.0.1 503', 'E cannot load bge: it has no ranking head', '', '-----',
    'INFO: 127.0.0.1:4 - "GET /health HTTP/1.1" 503', 'srv operator(): cleaning up before exit...', 'main: exiting due to model loading error'
  ]
  t.equal(withoutNoise(log, '/health').length, 5)
  t.equal(withoutNoise(['GET /healthy', 'see /health', 'GET /v1/health'], '/health').length, 3)
  t.equal(lastWords(withoutNoise(log, '/health')), '; its last output: E cannot load bge: it has no ranking head')
  const verbose = ['0.00.063.644 E srv          init: chat template parsing error: try using --jinja',
    '0.00.063.669 I srv    operator(): operator(): cleaning up before exit...', '0.00.066.965 E srv  llama_server: exiting due to model loading error',
    '\u001B[0m0.00.067.060 D ~llama_context:        CPU compute buffer size is   0.6574 MiB']
  t.match(lastWords(verbose), /E srv +init: chat template parsing error: try using --jinja$/, 'lines for debugging come after the reason')
  t.equal(lastWords(['main: exiting']), '; its last output: main: exiting', 'better than nothing')
  t.equal(lastWords(['', '== 1']), '')
  t.ok(lastWords(['x'.repeat(5_000)]).length < 400)
})
