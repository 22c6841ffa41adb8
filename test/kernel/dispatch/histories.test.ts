import t from 'tap'
import { percentile, RequestHistory } from '../../../kernel/dispatch/requests/request-history.js'
import { throughputHistory } from '../../../kernel/dispatch/requests/throughput-history.js'
import { UpstreamMeters } from '../../../kernel/dispatch/requests/upstream-meters.js'
import { Throughput } from '../../../kernel/slots/life/engine/throughput.js'
import { FakeClock } from '../../../kernel/testing/index.js'
import fc from '../../property.js'

const START = 1_700_000_000_000

t.test('tokens over time: pieces of whole seconds, the empty ones left out, oldest first', async t => {
  const clock = new FakeClock(START)
  const [a, b, remote] = [new Throughput(clock), new Throughput(clock), new Throughput(clock)] as const
  const history = (windowS: number, buckets: number) =>
    throughputHistory({ windowS, buckets }, new Map([['a', a], ['b', b]]), new Map([['cloud', remote]]), clock)
  t.strictSame(history(100, 20), { window_s: 100, bucket_s: 5, samples: [], per_slot: {}, per_upstream: {} })

  a.addTokens(50)
  await clock.advance(20_000)
  a.addTokens(10)
  b.addTokens(20)
  remote.addTokens(5)
  const seconds = START / 1000
  t.strictSame(history(100, 20), {
    window_s: 100,
    bucket_s: 5,
    samples: [{ ts: seconds + 1, total_tps: 10, serving_slots: 1 }, { ts: seconds + 21, total_tps: 7, serving_slots: 2 }],
    per_slot: { a: [10, 2], b: [0, 4] },
    per_upstream: { cloud: [0, 1] }
  })
  t.match(history(5, 1), { bucket_s: 5, samples: [{ total_tps: 7 }], per_slot: { a: [2] } })
  t.match(history(5, 120), { bucket_s: 1, samples: [{ total_tps: 35 }] }, 'no piece is shorter than a second')
  t.match(history(21, 2), { bucket_s: 11, samples: [{ ts: seconds + 10 }, { ts: seconds + 21 }] }, 'what does not divide is rounded up')
  await clock.advance(3_578_000)
  t.strictSame(history(3600, 1).per_slot, { a: [0.017], b: [0.006] }, 'an hour is kept')
  await clock.advance(1_000_000)
  t.strictSame(history(3600, 120).samples, [])
})

t.test('whatever the window, no token is counted twice and none of the window is lost', async () => {
  const event = fc.record({ wait: fc.integer({ min: 0, max: 400_000 }), tokens: fc.integer({ min: 1, max: 500 }) })
  const windows = [fc.integer({ min: 5, max: 3600 }), fc.integer({ min: 1, max: 120 })] as const
  await fc.assert(fc.asyncProperty(fc.array(event, { maxLength: 30 }), ...windows, async (events, windowS, buckets) => {
    const clock = new FakeClock(START)
    const meter = new Throughput(clock)
    const times: Array<{ at: number, tokens: number }> = []
    for (const { wait, tokens } of events) {
      await clock.advance(wait)
      meter.addTokens(tokens)
      times.push({ at: Math.floor(clock.monotonic() / 1000), tokens })
    }
    const { bucket_s: bucketS, samples, per_slot: perSlot } = throughputHistory({ windowS, buckets }, new Map([['a', meter]]), new Map(), clock)
    const end = Math.floor(clock.monotonic() / 1000) + 1
    const from = Math.max(end - Math.ceil(windowS / bucketS) * bucketS, end - 3600)
    const wanted = times.filter(({ at }) => at >= from).reduce((sum, { tokens }) => sum + tokens, 0)
    const counted = (perSlot.a ?? []).reduce((sum, rate) => sum + rate * bucketS, 0)
    return Math.abs(counted - wanted) <= 0.001 * bucketS * (samples.length + 1) && samples.length <= buckets
  }), { numRuns: 200 })
})

t.test('upstreams that are gone are forgotten', async t => {
  const meters = new UpstreamMeters(new FakeClock())
  meters.of('a').addTokens(1)
  meters.of('b')
  t.equal(meters.of('a').read().tokenCount, 1)
  meters.keep(new Set(['b', 'c']))
  t.strictSame([...meters.all().keys()], ['b'])
})

t.test('requests that ended: rate, times, failures', async t => {
  const clock = new FakeClock(START)
  const history = new RequestHistory(clock)
  t.strictSame(history.summary(60), { requests: 0, perMinute: 0, p50Ms: null, p95Ms: null, surfaces: [], errors: 0 })
  history.ended('embeddings', clock.monotonic() - 9_000, false)
  await clock.advance(61_000)
  for (let i = 1; i <= 20; i++) history.ended(i % 4 === 0 ? 'rerank' : 'chat', clock.monotonic() - i * 100, i === 20)
  t.strictSame(history.summary(60), {
    requests: 20, perMinute: 20, p50Ms: 1000, p95Ms: 1900, surfaces: [{ surface: 'chat', count: 15 }, { surface: 'rerank', count: 5 }], errors: 1
  })
  t.match(history.summary(120), { requests: 21, perMinute: 10.5 })
  const begun = clock.monotonic()
  clock.setWall(0)
  history.ended('chat', begun, false)
  t.match(history.summary(1), { requests: 21, p50Ms: 1000 }, 'a clock that is set back changes no times')
})

t.test('more requests than are remembered: the rate is that of the time which they cover', async t => {
  const clock = new FakeClock(START)
  const history = new RequestHistory(clock)
  for (let i = 0; i < 9_000; i++) {
    history.ended('chat', clock.monotonic(), false)
    if (i % 100 === 99) await clock.advance(1_000)
  }
  const { requests, perMinute } = history.summary(3_600)
  t.equal(requests, 8_192)
  t.ok(Math.abs(perMinute - 6_000) < 100, String(perMinute))
})

t.test('a percentile is the value of the nearest rank', async t => {
  t.equal(percentile([], 0.5), null)
  t.equal(percentile([7], 0.95), 7)
  t.equal(percentile([1, 2], 0.5), 1)
  t.equal(percentile([1, 2, 3], 1), 3)
})
