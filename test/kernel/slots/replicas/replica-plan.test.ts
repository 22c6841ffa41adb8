import t from 'tap'
import { planReplicas, type Replica, type ReplicaLoad, type ReplicaTerms } from '../../../../kernel/slots/replicas/replica-plan.js'
import { Random } from '../random.js'
import { edge, fourHours, pulses, seeded } from './seeded-loads.js'
import { replay, type Replayed } from './replay.js'

const terms: ReplicaTerms = {
  min: 0, normal: 1, max: 4, workers: 2, upAfterMs: 2_000, downAfterMs: 300_000, idleMs: 900_000, awake: true
}
const nothing: ReplicaLoad = { waiting: 0, pressing: 0, oldestSince: null, peak: 0, peakFallsAt: null }
const NOW = 1_000_000

const down = (index: number): Replica => ({ index, stage: 'down', inFlight: 0, workers: null, usedAt: 0, retryAt: 0 })
const up = (index: number, inFlight = 0, usedAt = NOW): Replica => ({ ...down(index), stage: 'up', inFlight, workers: 2, usedAt })
const failed = (index: number, retryAt: number): Replica => ({ ...down(index), stage: 'failed', retryAt })
const waits = (waiting: number, ms: number): ReplicaLoad => ({ ...nothing, waiting, pressing: waiting, oldestSince: NOW - ms })
const planned = (replicas: readonly Replica[], load: ReplicaLoad, more: Partial<ReplicaTerms> = {}): string[] =>
  planReplicas(replicas, load, { ...terms, ...more }, NOW).actions.map(({ type, index }) => `${type} ${index}`)

t.test('the first request starts as many as the slot has normally, at once', async t => {
  t.strictSame(planned([1, 2, 3, 4].map(down), waits(1, 0)), ['start 1'])
  t.strictSame(planned([1, 2, 3, 4].map(down), waits(1, 0), { normal: 2 }), ['start 1', 'start 2'])
  t.strictSame(planned([1, 2].map(down), waits(1, 0), { awake: false }), [], 'nothing is started for a slot that was unloaded')
})

t.test('idle replicas go while another one is coming, and never for one that may fail to come', async t => {
  const idle = (index: number): Replica => ({ ...up(index), usedAt: NOW - 60_000 })
  const coming: Replica = { ...down(3), stage: 'coming' }
  const quiet = { waiting: 0, pressing: 0, oldestSince: null, peak: 0, peakFallsAt: null }
  const of = (said: Partial<ReplicaTerms>, load: ReplicaLoad = quiet): unknown =>
    planReplicas([idle(1), idle(2), coming], load, { ...terms, idleMs: 60_000, ...said }, NOW).actions
  t.match(of({ normal: 3 }), [{ type: 'stop', index: 2, why: 'idle' }, { type: 'stop', index: 1, why: 'idle' }])
  t.match(of({ normal: 1 }), [{ type: 'stop', index: 2, why: 'spare' }, { type: 'stop', index: 1, why: 'idle' }])
  t.strictSame((of({ normal: 3, min: 2 }) as unknown[]).length, 0, 'the one that is coming does not count for those that must stay')
  t.strictSame(of({ normal: 3 }, { ...quiet, waiting: 1, pressing: 1, oldestSince: NOW }), [], 'none goes while a request waits')
})

t.test('a line that has stood for a while starts what it keeps at work, less what is coming', async t => {
  t.strictSame(planned([up(1, 2), down(2), down(3), down(4)], waits(1, 1_999)), [])
  t.equal(planReplicas([up(1, 2), down(2)], waits(1, 500), terms, NOW).lookAt, NOW + 1_500, 'it looks again when the time has come')
  t.strictSame(planned([up(1, 2), down(2), down(3), down(4)], waits(1, 2_000)), ['start 2'])
  t.strictSame(planned([up(1, 2), down(2), down(3), down(4)], waits(5, 2_000)), ['start 2', 'start 3', 'start 4'])
  t.strictSame(planned([up(1, 2), { ...down(2), stage: 'coming' }, down(3), down(4)], waits(2, 60_000)), [])
  t.strictSame(planned([up(1, 2), up(2, 2)], waits(50, 60_000), { max: 2 }), [], 'never more than the most')
  t.strictSame(planned([{ ...up(1, 2), workers: null }, down(2)], waits(3, 60_000)), [], 'an engine that takes all has no line that another would shorten')
})

t.test('requests of the low class bring up a slot that is down, and no further replica before they have waited for long', async t => {
  const low = (waiting: number, pressing = 0): ReplicaLoad =>
    ({ ...nothing, waiting, pressing, oldestSince: pressing === 0 ? NOW + 25_000 : NOW - 60_000 })
  t.strictSame(planned([1, 2].map(down), low(3)), ['start 1'])
  t.strictSame(planned([up(1, 2), down(2), down(3)], low(40)), [])
  t.equal(planReplicas([up(1, 2), down(2)], low(40), terms, NOW).lookAt, NOW + 27_000, 'it looks again when they count as the others')
  t.strictSame(planned([up(1, 2), down(2), down(3)], low(40, 1)), ['start 2'], 'as many as the others need')
})

t.test('one that failed holds up the line\'s starts until its next try, but a request that finds nothing hears why', async t => {
  t.strictSame(planned([up(1, 2), failed(2, NOW + 5_000), down(3)], waits(3, 60_000)), [])
  t.equal(planReplicas([up(1, 2), failed(2, NOW + 5_000), down(3)], waits(3, 60_000), terms, NOW).lookAt, NOW + 5_000)
  t.strictSame(planned([up(1, 2), failed(2, NOW), down(3)], waits(3, 60_000)), ['start 3', 'start 2'], 'those that never failed first')
  t.strictSame(planned([failed(1, NOW + 9_000), failed(2, NOW + 5_000)], waits(1, 0)), ['start 2'])
  t.strictSame(planned([failed(1, NOW + 9_000), down(2)], waits(1, 0)), ['start 2'], 'rather one that can come up')
})

t.test('the least number is held up, also after a crash, with its pauses', async t => {
  t.strictSame(planned([down(1), down(2)], nothing, { min: 2, normal: 2 }), ['start 1', 'start 2'])
  t.strictSame(planned([up(1), failed(2, NOW + 1_000)], nothing, { min: 2, normal: 2 }), [])
  t.equal(planReplicas([up(1), failed(2, NOW + 1_000)], nothing, { ...terms, min: 2, normal: 2 }, NOW).lookAt, NOW + 1_000)
  t.strictSame(planned([up(1), failed(2, NOW)], nothing, { min: 2, normal: 2 }), ['start 2'])
})

t.test('what the busiest moment of the window did not need goes, and what works ends its requests first', async t => {
  t.strictSame(planned([up(1, 1), up(2, 1), up(3)], { ...nothing, peak: 6 }), [])
  t.strictSame(planned([up(1, 1), up(2, 1), up(3)], { ...nothing, peak: 4 }), ['stop 3'])
  t.strictSame(planned([up(1, 1), up(2, 1), up(3, 1)], { ...nothing, peak: 2 }), ['retire 3', 'retire 2'])
  t.strictSame(planned([up(1, 2), { ...up(2, 1), stage: 'retiring' }], { ...nothing, peak: 3 }), [])
  t.strictSame(planned([up(1, 2), { ...up(2, 0), stage: 'retiring' }], { ...nothing, peak: 2 }), ['stop 2'])
  t.strictSame(planned([up(1, 2), { ...up(2, 1), stage: 'retiring' }, down(3)], waits(2, 2_000)), ['keep 2'],
    'one that was to go is kept before another starts')
  t.strictSame(planned([up(1), up(2)], nothing, { normal: 2 }), [], 'those that the slot has normally stay')
})

t.test('a replica without work for the idle time goes, down to the least number', async t => {
  const idle = [1, 2, 3].map(index => up(index, 0, NOW - 900_000))
  t.strictSame(planned(idle, nothing, { normal: 3 }), ['stop 3', 'stop 2', 'stop 1'])
  t.strictSame(planned(idle, nothing, { normal: 3, min: 1 }), ['stop 3', 'stop 2'])
  t.strictSame(planned(idle, nothing, { normal: 3, idleMs: null }), [])
  t.equal(planReplicas([up(1, 0, NOW - 1_000)], nothing, terms, NOW).lookAt, NOW + 899_000)
})

t.test('a replica that came stays for the window at least: a load at the edge does not make it come and go', async t => {
  const { starts, ups } = replay(seeded(7, edge), { terms: { ...terms, idleMs: null }, startMs: 20_000 })
  t.ok(starts <= 60 / 5, `${starts} starts in an hour`)
  const rises = ups.filter(({ up: count }, i) => count > (ups[i - 1]?.up ?? 0))
  const falls = ups.filter(({ up: count }, i) => count < (ups[i - 1]?.up ?? 0))
  // the window begins with the line that it was started for, 20 s before it is up
  t.strictSame(rises.filter(({ at }) => falls.some(fall => fall.at > at && fall.at - at < 280_000)), [])
})

t.test('bursts that come back within the window find the replicas of the last one', async t => {
  const short = replay(seeded(8, pulses), { terms: { ...terms, downAfterMs: 60_000, idleMs: null }, startMs: 20_000 })
  const long = replay(seeded(8, pulses), { terms: { ...terms, downAfterMs: 900_000, idleMs: null }, startMs: 20_000 })
  t.ok(long.starts <= 4, `${long.starts} starts`)
  t.ok(short.starts > long.starts, 'a short window forgets them')
  t.ok(short.engineMs < long.engineMs, 'and saves the time of engines')
})

t.test('four hours with bursts: it waits little more than with the most replicas all the time, for a fraction of their time', async t => {
  const load = seeded(9, fourHours)
  const scaled = replay(load, { terms, startMs: 20_000 })
  const fixed = replay(load, { terms: { ...terms, normal: 4, idleMs: null }, startMs: 20_000 })
  t.ok(scaled.waitsMs.every(wait => wait >= 0), 'each request is served')
  const p95 = ({ waitsMs }: Replayed): number => waitsMs.toSorted((a, b) => a - b)[Math.floor(waitsMs.length * 0.95)]!
  t.ok(p95(scaled) - p95(fixed) < 5_000, `${p95(scaled)} ms of waiting at the 95th percentile, ${p95(fixed)} ms with all of them`)
  t.ok(scaled.engineMs < 0.6 * fixed.engineMs, `${Math.round(100 * scaled.engineMs / fixed.engineMs)} % of the engines' time`)
  t.equal(scaled.ups.at(-1)?.up, 0, 'in the end all are gone')
})

t.test('whatever the load and the failures: never more than the most, each request is served, and in the end none is left', async t => {
  const random = new Random(Number(process.env.SVC_TEST_SEED ?? 11))
  for (let script = 0; script < 60; script++) {
    const max = 1 + random.int(6)
    const own: ReplicaTerms = {
      ...terms,
      max,
      normal: 1 + random.int(max),
      workers: 1 + random.int(4),
      upAfterMs: random.pick([0, 500, 5_000]),
      downAfterMs: random.pick([1_000, 60_000, 600_000]),
      idleMs: random.pick([1_000, 60_000])
    }
    const load = seeded(random.int(1e9), Array.from({ length: 30 }, () => random.pick([0, 0, 2, 10, 60])))
    const { waitsMs, ups } = replay(load, {
      terms: own, startMs: random.pick([0, 1_000, 60_000]), failsAt: () => random.chance(0.2)
    })
    t.ok(ups.every(({ up: count }) => count <= max), 'never more than the most')
    t.ok(waitsMs.every(wait => wait >= 0), 'each is served')
    if (load.length > 0) t.equal(ups.at(-1)?.up, 0, 'none is left')
  }
})
